import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import type { PolicyConfig } from "../config/schema/policy.ts";
import type { ExternalBlocker, PolicyRule, Step, StepVerification } from "../model/policy/policy.ts";
import type { Safety } from "../model/policy/safety.ts";
import type { TimeInterval } from "../model/policy/time-interval.ts";

/** The policies that a configuration has, in the order in which they come to act. */
export const policyRulesOf = ({ policies }: Pick<LoadedConfig, "policies">): readonly PolicyRule[] =>
  policies.map(({ policy }) => ruleOf(policy));

/** The times that policies name as their windows. */
export const timeIntervalsOf = ({ time_intervals }: Config): readonly TimeInterval[] => time_intervals;

/** The limits that a configuration sets over all policies. */
export function safetyOf({ safety }: Pick<Config, "safety">): Safety {
  const { trust, max_disrupted, max_actions, breaker, correlated, efficacy } = safety;
  return {
    mode: safety.mode,
    trust: {
      minInventory: trust.min_inventory,
      maxMissing: trust.max_missing,
      maxUnknown: trust.max_unknown,
      maxFreshestLastSeenMs: trust.max_freshest_last_seen,
      warmupWalks: trust.warmup_walks,
    },
    maxUnhealthy: { share: safety.max_unhealthy.percent },
    maxDisrupted: { share: max_disrupted.percent, amount: max_disrupted.amount },
    maxDisruptedPer: safety.max_disrupted_per,
    minOnlinePer: safety.min_online_per,
    maxInFlight: safety.max_in_flight,
    maxActions: { amount: max_actions.amount, perMs: max_actions.per },
    breaker: { share: breaker.percent, amount: breaker.amount, withinMs: breaker.within },
    approvalTtlMs: safety.approval_ttl,
    cooldownMs: safety.cooldown,
    stormCooldownMs: safety.storm_cooldown,
    correlated: {
      by: correlated.by,
      nodes: correlated.nodes,
      share: correlated.percent,
      withinMs: correlated.within,
    },
    canary: safety.canary,
    protected: safety.protected ?? null,
    efficacy: { window: efficacy.window, minSuccess: efficacy.min_success },
  };
}

function ruleOf(policy: PolicyConfig): PolicyRule {
  const { retry } = policy;
  return {
    name: policy.name,
    mode: policy.mode,
    match: policy.match ?? null,
    when: policy.when,
    forMs: policy.for,
    clearForMs: policy.clear_for,
    maxAgeMs: policy.max_age ?? null,
    steps: policy.steps.map(stepOf),
    retry: { episodes: retry.episodes, everyMs: retry.every, forgetAfterMs: retry.forget_after },
    windows: policy.windows,
    blockedBy: policy.blocked_by.map(blockerOf),
  };
}

function stepOf(step: PolicyConfig["steps"][number]): Step {
  switch (step.action) {
    case "disconnect":
      return { action: step.action, verify: verifyOf(step.verify) };
    case "reboot":
      return { action: step.action, force: step.force, verify: verifyOf(step.verify) };
    case "quarantine": {
      const { action, duration, reason, verify } = step;
      return { action, durationMs: duration, reason, verify: verifyOf(verify) };
    }
    case "notify":
      return step;
    default:
      return step satisfies never;
  }
}

const verifyOf = ({ within, expect }: { within: number; expect?: string }): StepVerification => ({
  withinMs: within,
  expect: expect ?? null,
});

const blockerOf = ({ query, alerts }: PolicyConfig["blocked_by"][number]): ExternalBlocker =>
  query === undefined ? { kind: "alerts", matchers: alerts ?? [] } : { kind: "query", query };
