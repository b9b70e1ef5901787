import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { ChurnRates } from "../../../src/model/scenario.ts";
import { NEVER, type SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import type { Operators } from "./operators.ts";
import type { Play } from "../daemon/simulation.ts";
import { type Stage, wholeNodes } from "../daemon/simulation-parts.ts";

/** Nodes that fall ill in the quiet period, one after the other: a daemon that has come to rest heals them. */
const LATE_ILLNESSES = 3;
const LATE_AFTER_MS: DurationMs = HOUR_MS;
const LATE_EVERY_MS: DurationMs = 40 * MINUTE_MS;
/** Nodes that only an operator can repair and that stay ill: they are given up. */
const INCURABLE_KEPT = 1;

/** The end of a run, in which every cause of a hold has ended. */
export interface QuietPeriod {
  /** To be called again and again. */
  attend(): void;
}

/**
 * Begins it. The fleet changes no more and no node falls ill by itself; operators resume, release, approve and reset. Of the
 * nodes that are ill so many stay so, unrepaired, as are far from a storm.
 */
export function beginQuiet(play: Play, operators: Operators): QuietPeriod {
  const { stage } = play;
  const { fleet, churn } = stage.service.world;
  const beganAt = stage.clock.monotonic();
  operators.beDiligent();
  [churn.joinAt, churn.leaveAt] = [NEVER, NEVER];
  Object.assign(fleet.churn as { -readonly [Key in keyof ChurnRates]: ChurnRates[Key] }, { vanishAfterReboot: 0 });
  for (const node of fleet.nodes) node.maintenanceAt = NEVER;
  stage.serviceNow();
  const kept = new Set(keptIll(stage).map(({ id }) => id));
  for (const node of [...fleet.nodes]) {
    if (node.ailment === "none") node.turnAt = NEVER;
    else if (node.cure !== "time") settleIllness(play, node, kept.has(node.id));
  }
  let late = 0;
  return {
    attend() {
      const dueAt = beganAt + LATE_AFTER_MS + late * LATE_EVERY_MS;
      if (late >= LATE_ILLNESSES || stage.clock.monotonic() < dueAt) return;
      late++;
      stage.serviceNow();
      const well = fleet.nodes.filter(({ status, ailment }) => status === "online" && ailment === "none");
      const node = well[Math.floor((well.length * late) / (LATE_ILLNESSES + 1))];
      if (node !== undefined) play.people.fallIll(node.id, { ailment: "outage", cure: "reboot" });
    },
  };
}

/** Nodes that stay ill: some that a reboot heals, and few that nothing does. */
function keptIll({ service, rules }: Stage): readonly SimulatedNode[] {
  const { nodes } = service.world.fleet;
  const room = Math.floor(wholeNodes(rules.safety.maxUnhealthy.share, nodes.length) / 2) - LATE_ILLNESSES;
  const ill = nodes.filter(({ ailment }) => ailment !== "none");
  const curable = ill.filter(({ cure }) => cure === "reboot" || cure === "forced_reboot");
  const incurable = ill.filter(({ cure }) => cure === "person").slice(0, INCURABLE_KEPT);
  return [...incurable, ...curable].slice(0, Math.max(0, room));
}

/** A node that is ill stays as ill as it is, or an operator repairs it now. */
function settleIllness({ people, stage }: Play, { id, ailment, cure }: SimulatedNode, isKept: boolean): void {
  const flaps = ailment === "flapping" || ailment === "none";
  if (isKept) people.fallIll(id, { ailment: flaps ? "outage" : ailment, cure });
  else people.fallIll(id, { ailment: "outage", cure: "person", healAt: stage.serviceNow() + 1 });
}
