import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { rateLimitedCount } from "../../../src/simulator/http/service.ts";
import { createPlanLimits, everyMinuteSettings } from "../../harness/daemon/virtual-daemon.ts";
import { defaultSafety } from "../../harness/policies.ts";
import { Simulation } from "../daemon/simulation.ts";
import type { Violation } from "../daemon/simulation-parts.ts";
import { configWithSafety, policyOf } from "../runs/fleet-policies.ts";

/** When the process is killed: at the n-th commit after the node's failure or at the n-th POST. Null means never. */
export type CrashPoint =
  | { readonly at: "commit"; readonly number: number; readonly when: "before" | "after" }
  | { readonly at: "post"; readonly number: number }
  | null;

/** The outcome of {@link runSteps}. */
export interface StepsReport {
  /** Number of commits after the failure. */
  readonly commits: number;
  /** Numbers of the commits that change an episode or an action. */
  readonly marks: readonly number[];
  /** POSTs in the order they were sent. */
  readonly posts: readonly string[];
  /** Final state of the episode, or null if there was none. */
  readonly end: string | null;
  readonly steps: number;
  readonly violations: readonly Violation[];
}

/** Longer than any run: the fleet has no failures of its own. */
const NEVER_MS = 1_000_000 * DAY_MS;
/** Time for all steps, the end of the quarantine and its probation. */
const STEPS_MS = 70 * MINUTE_MS;
const SETTLE_MS = 4 * MINUTE_MS;
const DOWN_MS = 20 * SECOND_MS;

const verify = { withinMs: 3 * MINUTE_MS, expect: null };
const config = configWithSafety(defaultSafety, [
  policyOf({
    name: "reboot-offline",
    when: 'node.status == "offline"',
    forMs: 2 * MINUTE_MS,
    clearForMs: 5 * MINUTE_MS,
    steps: [
      { action: "disconnect", verify },
      { action: "reboot", force: false, verify },
      { action: "reboot", force: true, verify },
      { action: "quarantine", durationMs: 10 * MINUTE_MS, reason: "{{policy}}", verify },
      { action: "notify", receiver: "oncall" },
    ],
    retry: { episodes: 1, everyMs: 6 * HOUR_MS, forgetAfterMs: 24 * HOUR_MS },
  }),
]);

/** Runs a fleet with a single failure that no action repairs, so that every step is executed. */
export async function runSteps(crash: CrashPoint): Promise<StepsReport> {
  let commits = 0;
  let posts = 0;
  let hasFailure = false;
  const marks: number[] = [];
  const kill = (simulation: Simulation) => simulation.kill(DOWN_MS);
  const simulation = new Simulation({
    seed: 1,
    scenario: {
      ...demoScenario,
      nodes: 40,
      sessions: 40,
      rates: { ...demoScenario.rates, faultEveryMs: NEVER_MS, maintenanceEveryMs: NEVER_MS },
    },
    settings: {
      ...everyMinuteSettings,
      schedules: { ...everyMinuteSettings.schedules, details: null, stats: null, hourly: null },
      limits: createPlanLimits("enterprise"),
    },
    config,
    onCommit(when, current, changes) {
      if (!hasFailure) return;
      if (when === "before") commits++;
      if (when === "before" && changes.some(({ kind }) => kind === "episode" || kind === "action")) marks.push(commits);
      if (crash?.at === "commit" && commits === crash.number && when === crash.when) kill(current);
    },
    onPost(_post, current) {
      posts++;
      if (crash?.at === "post" && posts === crash.number) kill(current);
    },
  });
  const { parts, interventions } = simulation;
  await simulation.advance(SETTLE_MS);
  hasFailure = true;
  interventions.startFailure(parts.service.network.fleet.nodes[7]!.id, { failureMode: "outage", remedy: "operator" });
  await simulation.advance(STEPS_MS);
  if (rateLimitedCount(parts.service) > 0) parts.addViolation("no 429", "a call was answered with 429");
  await simulation.stop();
  const episodes = [...parts.recordedState.episodes.values()];
  if (episodes.length > 1) parts.addViolation("one episode", `there are ${episodes.length}`);
  return {
    commits,
    marks,
    posts: parts.posts.map(({ kind, body }) => (kind === "reboot" ? `reboot ${body}` : kind)),
    end: episodes[0]?.state ?? null,
    steps: episodes[0]?.step ?? 0,
    violations: parts.violations,
  };
}
