import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { ChurnRates } from "../../../src/config/schema/scenario.ts";
import { isDown, isLost } from "../../../src/policy/episodes/episode-states.ts";
import { NEVER, type SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import type { Simulation } from "../daemon/simulation.ts";
import { nodesOfShare, type SimulationParts } from "../daemon/simulation-parts.ts";
import type { Operators } from "./operators.ts";

/** Failures that start in the quiet period, one after the other. The daemon must repair them. */
const LATE_FAILURES = 3;
const LATE_AFTER_MS: DurationMs = HOUR_MS;
const LATE_FAILURE_INTERVAL_MS: DurationMs = 40 * MINUTE_MS;
/** Failing nodes that only an operator could repair and that are left to be given up. */
const INCURABLE_NODES_MAX = 1;

/** The end of a run, in which every cause of a hold has ended. */
export interface QuietPeriod {
  /** Call at every step. */
  step(): void;
}

/**
 * Starts the quiet period: the fleet no longer changes, no random failure starts, and operators resume, release,
 * approve and reset. Some failing nodes stay unrepaired, too few for a storm.
 */
export function startQuietPeriod(simulation: Simulation, operators: Operators): QuietPeriod {
  const { parts } = simulation;
  const { fleet, churn } = parts.service.network;
  const startedAt = parts.clock.monotonic();
  operators.setDiligent();
  [churn.joinAt, churn.leaveAt] = [NEVER, NEVER];
  Object.assign(fleet.churn as { -readonly [Key in keyof ChurnRates]: ChurnRates[Key] }, {
    vanishAfterReboot: 0,
    failAfterReboot: 0,
  });
  for (const node of fleet.nodes) node.maintenanceAt = NEVER;
  parts.serviceNow();
  const leftFailing = new Set(nodesLeftFailing(parts).map(({ id }) => id));
  for (const node of [...fleet.nodes]) {
    if (node.failureMode === "none") node.nextPhaseAt = NEVER;
    else if (node.remedy !== "time") finishFailure(simulation, node, leftFailing.has(node.id));
  }
  let lateFailures = 0;
  return {
    step() {
      const dueAt = startedAt + LATE_AFTER_MS + lateFailures * LATE_FAILURE_INTERVAL_MS;
      if (lateFailures >= LATE_FAILURES || parts.clock.monotonic() < dueAt) return;
      lateFailures++;
      parts.serviceNow();
      const healthy = fleet.nodes.filter(({ status, failureMode }) => status === "online" && failureMode === "none");
      const node = healthy[Math.floor((healthy.length * lateFailures) / (LATE_FAILURES + 1))];
      if (node !== undefined)
        simulation.interventions.startFailure(node.id, { failureMode: "outage", remedy: "reboot" });
    },
  };
}

/** Returns the nodes that stay unrepaired: mostly nodes that a reboot repairs. */
function nodesLeftFailing({ service, config, recordedState }: SimulationParts): readonly SimulatedNode[] {
  const { nodes } = service.network.fleet;
  const room = Math.floor(nodesOfShare(config.safety.maxUnhealthy.share, nodes.length) / 2) - LATE_FAILURES;
  // Lost nodes are repaired, as they would hold others.
  const lost = new Set(
    [...recordedState.open].flatMap((id) => {
      const episode = recordedState.episodes.get(id)!;
      return isLost(episode) || isDown(episode) ? [episode.node] : [];
    }),
  );
  const failing = nodes.filter(({ id, failureMode }) => failureMode !== "none" && !lost.has(id));
  const curable = failing.filter(({ remedy }) => remedy === "reboot" || remedy === "forced_reboot");
  const incurable = failing.filter(({ remedy }) => remedy === "operator").slice(0, INCURABLE_NODES_MAX);
  return [...incurable, ...curable].slice(0, Math.max(0, room));
}

/** Ends a failure now by an operator's repair, or makes it permanent. */
function finishFailure(
  { interventions, parts }: Simulation,
  { id, failureMode, remedy }: SimulatedNode,
  isLeftFailing: boolean,
): void {
  const isFlapping = failureMode === "flapping" || failureMode === "none";
  if (isLeftFailing) interventions.startFailure(id, { failureMode: isFlapping ? "outage" : failureMode, remedy });
  else interventions.startFailure(id, { failureMode: "outage", remedy: "operator", recoverAt: parts.serviceNow() + 1 });
}
