import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { type Random, seededRandom } from "../../src/base/random.ts";
import type { Rules } from "../../src/engine/ward.ts";
import type { Mode, PolicyRule } from "../../src/model/policy.ts";
import type { Fault, FaultKind, LimiterKind, Scenario, ServiceOptions } from "../../src/model/scenario.ts";
import { demoScenario } from "../../src/simulator/defaults.ts";
import { usualSafety } from "../engine/rules.ts";
import { policyOf, quickPolicies, rulesUnder } from "./fleetrules.ts";

/** What befalls the process, the clock and the fleet beside what the script of faults does. */
export type Blow =
  | { readonly kind: "restart" | "crash"; readonly downMs: DurationMs }
  /** At the n-th commit from then on, before or after it reached the store. */
  | {
      readonly kind: "crash_at_commit";
      readonly commits: number;
      readonly when: "before" | "after";
      readonly downMs: DurationMs;
    }
  | { readonly kind: "crash_at_post"; readonly downMs: DurationMs }
  | { readonly kind: "disk_full"; readonly forMs: DurationMs }
  | { readonly kind: "step"; readonly byMs: number }
  | { readonly kind: "people_quarantine" | "hold"; readonly node: number; readonly forMs: DurationMs }
  | { readonly kind: "people_lift" | "pause"; readonly forMs: DurationMs };

/** All that a seed says of one run. */
export interface Turmoil {
  readonly seed: number;
  readonly scenario: Scenario;
  readonly plan: ServiceOptions["plan"];
  readonly rules: Rules;
  /** In the order of their times from the start. */
  readonly blows: readonly { readonly atMs: DurationMs; readonly blow: Blow }[];
}

/** Until then a run is left alone, so that the daemon knows what it should see. */
const CALM_MS: DurationMs = 30 * MINUTE_MS;
/** And so long before its end. */
export const REST_MS: DurationMs = 2 * HOUR_MS;

/** How often nodes fall ill, and how long until a person mends them: a tenth of them may well be ill, and not half. */
const ILLNESS = [
  { faultEveryMs: 2 * HOUR_MS, repairMs: 20 * MINUTE_MS },
  { faultEveryMs: 5 * HOUR_MS, repairMs: HOUR_MS },
  { faultEveryMs: 20 * HOUR_MS, repairMs: 4 * HOUR_MS },
];

/** How long a run is, and how many nodes it has. */
export interface TurmoilSize {
  readonly hours: number;
  readonly nodes: number;
}

/** The turmoil of a seed over `hours` hours, of which the last two are calm. */
export function turmoilOf(seed: number, { hours, nodes }: TurmoilSize): Turmoil {
  const random = seededRandom(seed * 7_919);
  const draw = createDraw(random);
  const untilMs = Math.max(CALM_MS, hours * HOUR_MS - REST_MS);
  const plan = draw.one(["starter", "business", "enterprise"] as const);
  const rules = rulesOf(draw);
  const faults = draw
    .times(untilMs, hours * 0.9)
    .map((afterMs): Fault => faultAt(draw, afterMs, Math.min(draw.ms(MINUTE_MS, 40 * MINUTE_MS), untilMs - afterMs)))
    .filter(standsAlone);
  const blows = [
    ...draw.times(untilMs, hours * 1.2).map((atMs) => ({ atMs, blow: processBlow(draw) })),
    ...draw.times(untilMs, hours * 0.2).map((atMs) => ({ atMs, blow: clockBlow(draw) })),
    ...draw.times(untilMs, hours * 1.5).map((atMs) => ({ atMs, blow: peopleBlow(draw, nodes) })),
  ].toSorted((one, other) => one.atMs - other.atMs);
  const scenario: Scenario = {
    ...demoScenario,
    ...{ seed, nodes, sessions: nodes * 2, faults },
    rates: {
      ...demoScenario.rates,
      ...draw.one(ILLNESS),
      selfHealing: draw.one([0.2, 0.6]),
      incurable: 0.2,
      rebootMs: draw.one([10 * SECOND_MS, 45 * SECOND_MS, 3 * MINUTE_MS]),
    },
    service: {
      ...demoScenario.service,
      plan,
      limiter: draw.one<LimiterKind>(["token_bucket", "fixed_window", "sliding_window"]),
      rateLimitHeaders: draw.one(["category", "plan", "off"] as const),
      actionReply: draw.one(["success", "empty_object", "no_content"] as const),
    },
  };
  return { seed, scenario, plan, rules, blows };
}

type Draw = ReturnType<typeof createDraw>;

function createDraw(random: Random) {
  const ms = (from: DurationMs, to: DurationMs): DurationMs => Math.round(from + random() * (to - from));
  return {
    random,
    ms,
    one: <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!,
    whole: (below: number): number => Math.floor(random() * below),
    chance: (share: number): boolean => random() < share,
    /** Some instants, about `mean` of them, in order. */
    times: (untilMs: DurationMs, mean: number): DurationMs[] =>
      Array.from({ length: Math.round(mean * (0.5 + random())) }, () => ms(CALM_MS, untilMs)).sort((a, b) => a - b),
  };
}

/** Limits that bind, and policies that differ from seed to seed. */
function rulesOf(draw: Draw): Rules {
  const mode = (): Mode => draw.one(["enforce", "enforce", "enforce", "approve", "dry_run"]);
  const policies = quickPolicies.map((policy): PolicyRule => {
    const [first, ...rest] = policy.steps;
    const isBeside = policy.when.includes("cpu_usage") && draw.chance(0.5);
    return {
      ...policy,
      when: isBeside ? `${policy.when} && node.cpu_usage > fleet.median.cpu_usage + 0.3` : policy.when,
      mode: mode(),
      forMs: draw.one([policy.forMs, 2 * MINUTE_MS, 10 * MINUTE_MS]),
      clearForMs: draw.one([2, 5, 15]) * MINUTE_MS,
      retry: { ...policy.retry, episodes: draw.one([1, 3]) },
      steps: draw.chance(0.3) ? [{ action: "notify", receiver: "oncall" }, first!, ...rest] : policy.steps,
    };
  });
  const silent = policyOf({
    name: "reboot-silent",
    when: 'node.status == "offline" && now - node.last_seen > duration("5m")',
    forMs: 3 * MINUTE_MS,
  });
  const safety = {
    ...usualSafety,
    maxDisrupted: { share: draw.one([0.02, 0.05]), amount: draw.one([3, 10]) },
    maxDisruptedPer: { region: draw.one([1, 3]), country: null },
    minOnlinePer: { region: draw.one([1, 8]), country: null },
    maxInFlight: draw.one([1, 3, 10]),
    maxActions: { amount: draw.one([6, 30, 100]), perMs: HOUR_MS },
    breaker: { share: draw.one([0.1, 0.6, 0.6]), amount: 10, withinMs: HOUR_MS },
    cooldownMs: draw.one([0, 10, 30]) * MINUTE_MS,
    stormCooldownMs: draw.one([5, 20]) * MINUTE_MS,
    correlated: { ...usualSafety.correlated, nodes: draw.one([5, 20, 20]) },
    canary: draw.chance(0.5),
    efficacy: { window: draw.one([10, 40]), minSuccess: 0.2 },
  };
  return rulesUnder(safety, draw.chance(0.5) ? [silent, ...policies.slice(1)] : policies);
}

const NETWORK: readonly ((draw: Draw) => FaultKind)[] = [
  (draw) => ({ kind: "status", status: draw.one([500, 502, 503, 504, 404, 400]) }),
  (draw) => ({ kind: "status", status: draw.one([401, 403]) }),
  () => ({ kind: "hang" }),
  () => ({ kind: "reset" }),
  () => ({ kind: "truncate" }),
  () => ({ kind: "lost_reply" }),
  () => ({ kind: "lost_reply" }),
  () => ({ kind: "bad_json" }),
  () => ({ kind: "html" }),
  () => ({ kind: "wrong_shape" }),
  (draw) => ({ kind: "slow_drip", bytesPerSecond: draw.one([50, 2_000, 20_000]) }),
];
const MATCHES = [
  undefined,
  "GET /v1/nodes",
  "GET /v1/nodes?",
  "GET /v1/nodes/",
  "POST /v1/nodes",
  "POST /v1/nodes",
  "/v1/sessions",
];
const SERVICE: readonly ((draw: Draw) => FaultKind)[] = [
  (draw) => ({ kind: "vanished", share: draw.one([0.02, 0.15, 0.5, 0.9]) }),
  () => ({ kind: "empty_list" }),
  () => ({ kind: "stale_last_seen" }),
  (draw) => ({ kind: "region_dark", region: draw.one(["us-east", "eu-west", "us-west", "ap-south", "eu-south"]) }),
  (draw) => ({
    kind: "clock_skew",
    skewMs: draw.one([-1, 1]) * draw.one([2 * SECOND_MS, 5 * MINUTE_MS, 26 * HOUR_MS]),
  }),
  (draw) => ({ kind: "bad_records", share: draw.one([0.02, 0.2, 0.7]) }),
];

function faultAt(draw: Draw, afterMs: DurationMs, forMs: DurationMs): Fault {
  if (draw.chance(0.5)) return { afterMs, forMs, fault: draw.one(SERVICE)(draw) };
  const match = draw.one(MATCHES);
  const share = draw.one([1, 1, 0.5, 0.1]);
  const fault = draw.one(NETWORK)(draw);
  return { afterMs, forMs, share, fault, ...(match === undefined ? {} : { match }) };
}

/** Of two faults of one kind at once only one has an effect. */
const standsAlone = ({ fault, afterMs }: Fault, index: number, all: readonly Fault[]): boolean =>
  !all.slice(0, index).some((each) => each.fault.kind === fault.kind && each.afterMs + each.forMs > afterMs);

const PROCESS = ["restart", "crash", "crash_at_commit", "crash_at_commit", "crash_at_post", "disk_full"] as const;

function processBlow(draw: Draw): Blow {
  const downMs = draw.ms(SECOND_MS, draw.one([5, 45]) * MINUTE_MS);
  const kind = draw.one(PROCESS);
  if (kind === "disk_full") return { kind, forMs: draw.ms(SECOND_MS, 20 * MINUTE_MS) };
  if (kind !== "crash_at_commit") return { kind, downMs };
  return { kind, commits: 1 + draw.whole(40), when: draw.one(["before", "after"] as const), downMs };
}

const clockBlow = (draw: Draw): Blow => ({
  kind: "step",
  byMs: draw.one([-1, 1]) * draw.one([SECOND_MS, 10 * MINUTE_MS, 3 * HOUR_MS]),
});

function peopleBlow(draw: Draw, nodes: number): Blow {
  const forMs = draw.ms(5 * MINUTE_MS, 3 * HOUR_MS);
  const kind = draw.one(["people_quarantine", "people_quarantine", "people_lift", "hold", "pause"] as const);
  switch (kind) {
    case "people_quarantine":
    case "hold":
      return { kind, node: draw.whole(nodes), forMs };
    case "people_lift":
    case "pause":
      return { kind, forMs: Math.min(forMs, 30 * MINUTE_MS) };
    default:
      return kind satisfies never;
  }
}
