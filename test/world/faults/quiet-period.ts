import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { ChurnRates } from "../../../src/model/scenario.ts";
import { NEVER, type SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import type { Simulation } from "../daemon/simulation.ts";
import { nodesOfShare, type SimulationParts } from "../daemon/simulation-parts.ts";
import type { Operators } from "./operators.ts";

/** Nodes that fall ill in the quiet period, one after the other: a daemon that has come to rest heals them. */
const LATE_FAILURES = 3;
const LATE_AFTER_MS: DurationMs = HOUR_MS;
const LATE_FAILURE_INTERVAL_MS: DurationMs = 40 * MINUTE_MS;
/** Nodes that only an operator can repair and that stay ill: they are given up. */
const INCURABLE_NODES_MAX = 1;

/** The end of a run, in which every cause of a hold has ended. */
export interface QuietPeriod {
  /** To be called again and again. */
  attend(): void;
}

/**
 * Begins it. The fleet changes no more and no node falls ill by itself; operators resume, release, approve and reset. Of the
 * nodes that are ill so many stay so, unrepaired, as are far from a storm.
 */
export function startQuietPeriod(simulation: Simulation, operators: Operators): QuietPeriod {
  const { parts } = simulation;
  const { fleet, churn } = parts.service.world;
  const beganAt = parts.clock.monotonic();
  operators.setDiligent();
  [churn.joinAt, churn.leaveAt] = [NEVER, NEVER];
  Object.assign(fleet.churn as { -readonly [Key in keyof ChurnRates]: ChurnRates[Key] }, { vanishAfterReboot: 0 });
  for (const node of fleet.nodes) node.maintenanceAt = NEVER;
  parts.serviceNow();
  const leftFailing = new Set(nodesLeftFailing(parts).map(({ id }) => id));
  for (const node of [...fleet.nodes]) {
    if (node.failureMode === "none") node.nextPhaseAt = NEVER;
    else if (node.remedy !== "time") finishFailure(simulation, node, leftFailing.has(node.id));
  }
  let late = 0;
  return {
    attend() {
      const dueAt = beganAt + LATE_AFTER_MS + late * LATE_FAILURE_INTERVAL_MS;
      if (late >= LATE_FAILURES || parts.clock.monotonic() < dueAt) return;
      late++;
      parts.serviceNow();
      const healthy = fleet.nodes.filter(
        ({ status, failureMode: ailment }) => status === "online" && ailment === "none",
      );
      const node = healthy[Math.floor((healthy.length * late) / (LATE_FAILURES + 1))];
      if (node !== undefined)
        simulation.interventions.startFailure(node.id, { failureMode: "outage", remedy: "reboot" });
    },
  };
}

/** Nodes that stay ill: some that a reboot heals, and few that nothing does. */
function nodesLeftFailing({ service, rules }: SimulationParts): readonly SimulatedNode[] {
  const { nodes } = service.world.fleet;
  const room = Math.floor(nodesOfShare(rules.safety.maxUnhealthy.share, nodes.length) / 2) - LATE_FAILURES;
  const failing = nodes.filter(({ failureMode: ailment }) => ailment !== "none");
  const curable = failing.filter(({ remedy: cure }) => cure === "reboot" || cure === "forced_reboot");
  const incurable = failing.filter(({ remedy: cure }) => cure === "person").slice(0, INCURABLE_NODES_MAX);
  return [...incurable, ...curable].slice(0, Math.max(0, room));
}

/** A node that is ill stays as ill as it is, or an operator repairs it now. */
function finishFailure(
  { interventions, parts }: Simulation,
  { id, failureMode: ailment, remedy: cure }: SimulatedNode,
  isKept: boolean,
): void {
  const isFlapping = ailment === "flapping" || ailment === "none";
  if (isKept) interventions.startFailure(id, { failureMode: isFlapping ? "outage" : ailment, remedy: cure });
  else interventions.startFailure(id, { failureMode: "outage", remedy: "person", recoverAt: parts.serviceNow() + 1 });
}
