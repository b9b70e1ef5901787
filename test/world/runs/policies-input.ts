import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import type { Safety } from "../../../src/config/schema/safety.ts";
import type { Mode } from "../../../src/model/policy/policy.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { defaultSafety } from "../../harness/policies.ts";
import { fastPolicies, policyOf } from "./fleet-policies.ts";
import type { RandomChoices } from "./random-choices.ts";

/** Windows that policies may name: one is open for half of the day, the other is closed for three hours. */
const INTERVALS: TimeInterval[] = [
  { name: "days", intervals: [{ times: [{ startMinute: 6 * 60, endMinute: 18 * 60 }] }] },
  {
    name: "off_peak",
    intervals: [
      {
        times: [
          { startMinute: 0, endMinute: 9 * 60 },
          { startMinute: 12 * 60, endMinute: 1_440 },
        ],
      },
    ],
  },
];

/** Draws policies and limits that are tight enough to take effect. */
export function randomConfig(choices: RandomChoices): RemediationConfig {
  const rebootSilent = policyOf({
    name: "reboot-silent",
    when: 'node.status == "offline" && now - node.last_seen > duration("5m")',
    forMs: 3 * MINUTE_MS,
  });
  const first = choices.chance(0.3) ? [rebootSilent] : fastPolicies.slice(0, 1);
  const policies = [...first, ...fastPolicies.slice(1)].map((policy) => randomVariant(choices, policy));
  return { policies, safety: randomSafety(choices), time_intervals: INTERVALS };
}

const CORRELATED: readonly Pick<Safety["correlated"], "by" | "nodes" | "share">[] = [
  { by: "region", nodes: 5, share: 1 },
  { by: "region", nodes: 20, share: 0.5 },
  { by: "country", nodes: 20, share: 0.5 },
];

function randomSafety(choices: RandomChoices): Safety {
  return {
    ...defaultSafety,
    maxUnhealthy: { share: choices.pick([0.2, 0.3]) },
    maxDisrupted: { share: choices.pick([0.02, 0.025, 0.05]), amount: choices.pick([3, 10]) },
    maxDisruptedPer: { region: choices.pick([1, 3]), country: null },
    minOnlinePer: { region: choices.pick([1, 8]), country: null },
    maxInFlight: choices.pick([1, 3, 10]),
    maxActions: { amount: choices.pick([6, 30, 100]), perMs: HOUR_MS },
    breaker: { share: choices.pick([0.05, 0.6, 0.6]), amount: choices.pick([5, 10]), withinMs: HOUR_MS },
    approvalTtlMs: choices.pick([20 * MINUTE_MS, 2 * HOUR_MS]),
    cooldownMs: choices.pick([0, 10, 30]) * MINUTE_MS,
    stormCooldownMs: choices.pick([5, 20]) * MINUTE_MS,
    correlated: { ...defaultSafety.correlated, ...choices.pick(CORRELATED) },
    canary: choices.chance(0.5),
    protected: choices.chance(0.3) ? 'node.country == "DE"' : null,
    efficacy: { window: choices.pick([10, 40]), minSuccess: 0.2 },
  };
}

/** Draws a variant of a policy. */
function randomVariant(choices: RandomChoices, policy: PolicySpec): PolicySpec {
  const [first, ...rest] = policy.steps;
  const mode = choices.pick<Mode>(["enforce", "enforce", "enforce", "approve", "dry_run"]);
  const comparesWithFleet = policy.name === "cool-hot-cpu" && choices.chance(0.5);
  return {
    ...policy,
    mode,
    when: comparesWithFleet ? `${policy.when} && node.cpu_usage > fleet.median.cpu_usage + 0.3` : policy.when,
    match: choices.chance(0.2) ? 'node.region != "us-east"' : null,
    forMs: choices.pick([policy.forMs, 2 * MINUTE_MS, 10 * MINUTE_MS]),
    clearForMs: choices.pick([2, 5, 15]) * MINUTE_MS,
    retry: { ...policy.retry, episodes: choices.pick([1, 3]), everyMs: choices.pick([30 * MINUTE_MS, 2 * HOUR_MS]) },
    windows: choices.chance(0.2) ? [choices.pick(INTERVALS).name] : [],
    blockedBy: choices.chance(0.2) ? [{ kind: "query", query: 'ALERTS{alertname="Upstream"}' }] : [],
    steps: choices.chance(0.3) ? [{ action: "notify", receiver: "oncall" }, first!, ...rest] : policy.steps,
  };
}

/** Draws an edit of the configuration: of one policy, of the set or order of policies, of the mode or of the limits. */
export function randomEdit(choices: RandomChoices, config: RemediationConfig): RemediationConfig {
  const { policies, safety } = config;
  const index = choices.integer(policies.length);
  switch (choices.pick(["text", "text", "mode", "order", "limits", "remove", "restore"] as const)) {
    case "text":
      return { ...config, policies: policies.with(index, randomVariant(choices, policies[index]!)) };
    case "mode":
      return {
        ...config,
        safety: { ...safety, mode: choices.pick<Mode>(["enforce", "enforce", "approve", "dry_run"]) },
      };
    case "order":
      return { ...config, policies: policies.toReversed() };
    case "limits":
      return { ...config, safety: { ...randomSafety(choices), mode: safety.mode } };
    case "remove":
      return policies.length < 2 ? config : { ...config, policies: policies.toSpliced(index, 1) };
    case "restore":
      return { ...config, policies: fastPolicies.map((policy) => randomVariant(choices, policy)) };
  }
}
