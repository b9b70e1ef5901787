import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault, Scenario } from "../../../src/config/schema/scenario.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { createPlanLimits, everyMinuteSettings } from "../../harness/daemon/virtual-daemon.ts";
import { defaultSafety } from "../../harness/policies.ts";
import { Simulation } from "../daemon/simulation.ts";
import { DISK_FULL } from "../daemon/simulation-parts.ts";
import { configWithSafety, policyOf } from "../runs/fleet-policies.ts";
import { reportOf, type WorldReport } from "../runs/world-run.ts";
import { Operators } from "./operators.ts";

/**
 * What happens at a commit: the service answers all actions with 429 for a while; the machine is suspended; or an operator
 * accepts the inventory while commits are slow, after which the disk is full, or the process is killed at the next commit.
 */
export const RACES = ["limit", "suspend", "accept", "accept_disk_full", "accept_kill"] as const;
export type Race = (typeof RACES)[number];

/** The outcome of {@link runRace}. */
interface RaceReport extends WorldReport {
  /** Number of commits after the failure that changed an episode or an action. */
  readonly marks: number;
}

const NEVER_MS: DurationMs = Number.MAX_SAFE_INTEGER;
const SETTLE_MS: DurationMs = 4 * MINUTE_MS;
/** Time for all steps and the end of the quarantine. */
const STEPS_MS: DurationMs = 70 * MINUTE_MS;
const LIMIT_MS: DurationMs = 10 * MINUTE_MS;
const SUSPENSION_MS: DurationMs = HOUR_MS;
const DOWN_MS: DurationMs = 20 * SECOND_MS;
const DISK_FULL_MS: DurationMs = MINUTE_MS;
const SLOW_DISK_MS: DurationMs = MINUTE_MS;
/** Longer than the read before an action, so that what follows it waits for the commit. */
const COMMIT_MS: DurationMs = 2 * SECOND_MS;

const NODE_INDEX = 7;
// A POST that is answered with 429 counts as well.
const safety = { ...defaultSafety, maxActions: { amount: 100, perMs: HOUR_MS } };
const verify = { withinMs: 3 * MINUTE_MS, expect: null };

/** A policy whose condition holds also while its node is down or quarantined. */
const policy = policyOf({
  name: "exercise-steps",
  when: "node.uptime_hours >= 0",
  steps: [
    { action: "disconnect", verify },
    { action: "reboot", force: false, verify },
    { action: "quarantine", durationMs: 30 * MINUTE_MS, reason: "{{policy}}", verify },
    { action: "reboot", force: true, verify },
    { action: "disconnect", verify },
  ],
  retry: { episodes: 1, everyMs: 6 * HOUR_MS, forgetAfterMs: 24 * HOUR_MS },
});

const every = (intervalMs: DurationMs) => ({ kind: "every", intervalMs }) as const;
const settings = {
  ...everyMinuteSettings,
  // After a suspension, the answers about sessions show the time before the nodes are listed again.
  schedules: {
    ...everyMinuteSettings.schedules,
    nodes: every(2 * MINUTE_MS),
    sessions: every(15 * SECOND_MS),
    details: null,
  },
  limits: createPlanLimits("enterprise"),
};

const limitedActions: Omit<Fault, "afterMs"> = {
  forMs: LIMIT_MS,
  match: "POST /v1/nodes",
  fault: { kind: "status", status: 429, bare: true, retryAfter: "5" },
};

/** Nothing fails by itself. */
const scenario: Scenario = {
  ...demoScenario,
  nodes: 20,
  sessions: 20,
  faults: [],
  rates: { ...demoScenario.rates, faultEveryMs: NEVER_MS, maintenanceEveryMs: NEVER_MS, repairMs: NEVER_MS },
  churn: { ...demoScenario.churn, vanishAfterReboot: 0, failAfterReboot: 1 },
};

/**
 * Runs a fleet with a single failure, which no step repairs, and after whose reboot the node stays down. The race happens
 * at the commit with that number, of those that change an episode or an action.
 */
export async function runRace(race: Race | null, number: number): Promise<RaceReport> {
  let marks = 0;
  let isStarted = false;
  let isAccepted = false;
  let diskFullUntil = 0;
  let slowUntil = 0;
  const simulation = new Simulation({
    seed: 1,
    scenario,
    settings,
    config: configWithSafety(safety, []),
    diskProblem: () => (simulation.parts.clock.monotonic() < diskFullUntil ? DISK_FULL : null),
    finishCommit: async () => {
      if (simulation.parts.clock.monotonic() < slowUntil) await simulation.parts.clock.sleep(COMMIT_MS);
    },
    onCommit(when, { parts }, changes) {
      if (!isStarted || when !== "after") return;
      const now = parts.clock.monotonic();
      if (isAccepted && race === "accept_kill") simulation.kill(DOWN_MS);
      isAccepted = changes.some((change) => change.kind === "command" && change.row.command === "accept-inventory");
      if (isAccepted && race === "accept_disk_full") diskFullUntil = now + DISK_FULL_MS;
      if (!changes.some(({ kind }) => kind === "episode" || kind === "action")) return;
      marks++;
      if (race !== null && marks === number) startRace();
    },
  });
  const { parts, interventions } = simulation;
  const { faultSchedule, startMs, fleet } = parts.service.network;
  const operators = new Operators(simulation, 1);

  function startRace(): void {
    if (race === "limit") faultSchedule.faults = [{ ...limitedActions, afterMs: parts.serviceNow() - startMs }];
    else if (race === "suspend") parts.machine.suspend(SUSPENSION_MS);
    else {
      slowUntil = parts.clock.monotonic() + SLOW_DISK_MS;
      void operators.acceptInventory();
    }
  }

  await simulation.advance(SETTLE_MS);
  const { id } = fleet.nodes[NODE_INDEX]!;
  interventions.startFailure(id, { failureMode: "full", remedy: "operator" });
  isStarted = true;
  const match = `node.id == "${id}"`;
  simulation.reload({ settings, config: configWithSafety(safety, [{ ...policy, match }]) });
  await simulation.advance(STEPS_MS + (race === "suspend" ? SUSPENSION_MS + STEPS_MS : 0));
  await simulation.stop();
  for (const action of parts.recordedState.inFlight) parts.addViolation("action not verified", action);
  return { ...reportOf(simulation, {}), marks };
}
