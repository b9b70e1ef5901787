import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { Safety } from "../../src/config/schema/safety.ts";
import type { PolicyRule, Step } from "../../src/model/policy/policy.ts";
import type { RemediationRules } from "../../src/remediation/context.ts";

/** The safety that a configuration has which says nothing, but that it enforces. */
export const defaultSafety: Safety = {
  mode: "enforce",
  trust: { minInventory: 0.8, maxMissing: 0.02, maxUnknown: 0.1, maxFreshestLastSeenMs: 5 * MINUTE_MS, warmupWalks: 2 },
  maxUnhealthy: { share: 0.2 },
  maxDisrupted: { share: 0.05, amount: 5 },
  maxDisruptedPer: { region: 1, country: null },
  minOnlinePer: { region: 1, country: null },
  maxInFlight: 1,
  maxActions: { amount: 6, perMs: HOUR_MS },
  breaker: { share: 0.05, amount: 10, withinMs: HOUR_MS },
  approvalTtlMs: 4 * HOUR_MS,
  cooldownMs: 30 * MINUTE_MS,
  stormCooldownMs: 30 * MINUTE_MS,
  correlated: { by: "region", nodes: 5, share: 0.5, withinMs: 5 * MINUTE_MS },
  canary: true,
  protected: null,
  efficacy: { window: 10, minSuccess: 0.5 },
};

const verify = (minutes: number) => ({ withinMs: minutes * MINUTE_MS, expect: null });

/** Steps as most ladders have them. */
export const steps = {
  disconnect: { action: "disconnect", verify: verify(3) },
  reboot: { action: "reboot", force: false, verify: verify(10) },
  force: { action: "reboot", force: true, verify: verify(15) },
  quarantine: {
    action: "quarantine",
    durationMs: 2 * HOUR_MS,
    reason: "{{policy}}: {{when}} ({{episode}})",
    verify: verify(5),
  },
  notify: { action: "notify", receiver: "oncall" },
} as const satisfies Record<string, Step>;

/** A policy that reboots what is offline, but for what a test says otherwise. */
export const rebootOffline = (changed: Partial<PolicyRule> = {}): PolicyRule => ({
  name: "reboot-offline",
  mode: "enforce",
  match: null,
  when: 'node.status == "offline"',
  forMs: 5 * MINUTE_MS,
  clearForMs: 10 * MINUTE_MS,
  maxAgeMs: null,
  steps: [steps.reboot, steps.force],
  retry: { episodes: 2, everyMs: 6 * HOUR_MS, forgetAfterMs: 24 * HOUR_MS },
  windows: [],
  blockedBy: [],
  ...changed,
});

/** One episode, after which the node is given up. */
export const withoutRetries: PolicyRule["retry"] = { episodes: 1, everyMs: 6 * HOUR_MS, forgetAfterMs: 24 * HOUR_MS };

/** Rules of some policies, with the usual safety but for what a test says otherwise. */
export const remediationRules = (policies: readonly PolicyRule[], safety: Partial<Safety> = {}): RemediationRules => ({
  policies,
  safety: { ...defaultSafety, ...safety },
  intervals: [],
});

/** Nothing holds but what a test says. */
export const withoutLimits = {
  canary: false,
  maxInFlight: 100,
  maxDisrupted: { share: 1, amount: 100 },
  maxDisruptedPer: { region: null, country: null },
  minOnlinePer: { region: null, country: null },
  maxActions: { amount: 100, perMs: HOUR_MS },
  maxUnhealthy: { share: 1 },
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;
