import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Rules } from "../../../src/remediation/context.ts";
import type { Mode, PolicyRule } from "../../../src/model/policy/policy.ts";
import type { Safety } from "../../../src/model/policy/safety.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import { usualSafety } from "../../harness/policies.ts";
import type { Draw } from "./random-choices.ts";
import { policyOf, quickPolicies } from "./fleet-policies.ts";

/** Windows that policies may name: one that is open for half of the day, and one that is closed for three hours. */
const INTERVALS: readonly TimeInterval[] = [
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

/** Draws policies and limits. The limits bind, and the policies differ from seed to seed. */
export function drawRules(draw: Draw): Rules {
  const silent = policyOf({
    name: "reboot-silent",
    when: 'node.status == "offline" && now - node.last_seen > duration("5m")',
    forMs: 3 * MINUTE_MS,
  });
  const first = draw.chance(0.3) ? [silent] : quickPolicies.slice(0, 1);
  const policies = [...first, ...quickPolicies.slice(1)].map((policy) => varied(draw, policy));
  return { policies, safety: drawSafety(draw), intervals: INTERVALS };
}

function drawSafety(draw: Draw): Safety {
  return {
    ...usualSafety,
    maxUnhealthy: { share: draw.one([0.2, 0.3]) },
    maxDisrupted: { share: draw.one([0.02, 0.025, 0.05]), amount: draw.one([3, 10]) },
    maxDisruptedPer: { region: draw.one([1, 3]), country: null },
    minOnlinePer: { region: draw.one([1, 8]), country: null },
    maxInFlight: draw.one([1, 3, 10]),
    maxActions: { amount: draw.one([6, 30, 100]), perMs: HOUR_MS },
    breaker: { share: draw.one([0.05, 0.6, 0.6]), amount: draw.one([5, 10]), withinMs: HOUR_MS },
    approvalTtlMs: draw.one([20 * MINUTE_MS, 2 * HOUR_MS]),
    cooldownMs: draw.one([0, 10, 30]) * MINUTE_MS,
    stormCooldownMs: draw.one([5, 20]) * MINUTE_MS,
    correlated: { ...usualSafety.correlated, nodes: draw.one([5, 20, 20]) },
    canary: draw.chance(0.5),
    protected: draw.chance(0.3) ? 'node.country == "DE"' : null,
    efficacy: { window: draw.one([10, 40]), minSuccess: 0.2 },
  };
}

/** Draws another text of a policy. */
function varied(draw: Draw, policy: PolicyRule): PolicyRule {
  const [first, ...rest] = policy.steps;
  const mode = draw.one<Mode>(["enforce", "enforce", "enforce", "approve", "dry_run"]);
  const isBeside = policy.name === "cool-hot-cpu" && draw.chance(0.5);
  return {
    ...policy,
    mode,
    when: isBeside ? `${policy.when} && node.cpu_usage > fleet.median.cpu_usage + 0.3` : policy.when,
    match: draw.chance(0.2) ? 'node.region != "us-east"' : null,
    forMs: draw.one([policy.forMs, 2 * MINUTE_MS, 10 * MINUTE_MS]),
    clearForMs: draw.one([2, 5, 15]) * MINUTE_MS,
    retry: { ...policy.retry, episodes: draw.one([1, 3]), everyMs: draw.one([30 * MINUTE_MS, 2 * HOUR_MS]) },
    windows: draw.chance(0.2) ? [draw.one(INTERVALS).name] : [],
    blockedBy: draw.chance(0.2) ? [{ kind: "query", query: 'ALERTS{alertname="Upstream"}' }] : [],
    steps: draw.chance(0.3) ? [{ action: "notify", receiver: "oncall" }, first!, ...rest] : policy.steps,
  };
}

/** Draws an edit of rules: the text of a policy, its order, its presence, or the limits. */
export function drawEdit(draw: Draw, rules: Rules): Rules {
  const { policies, safety } = rules;
  const index = draw.whole(policies.length);
  switch (draw.one(["text", "text", "mode", "order", "limits", "remove", "restore"] as const)) {
    case "text":
      return { ...rules, policies: policies.with(index, varied(draw, policies[index]!)) };
    case "mode":
      return { ...rules, safety: { ...safety, mode: draw.one<Mode>(["enforce", "enforce", "approve", "dry_run"]) } };
    case "order":
      return { ...rules, policies: policies.toReversed() };
    case "limits":
      return { ...rules, safety: { ...drawSafety(draw), mode: safety.mode } };
    case "remove":
      return policies.length < 2 ? rules : { ...rules, policies: policies.toSpliced(index, 1) };
    case "restore":
      return { ...rules, policies: quickPolicies.map((policy) => varied(draw, policy)) };
  }
}
