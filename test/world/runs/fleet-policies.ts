import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicySpec, Step } from "../../../src/config/schema/policy.ts";
import type { Safety } from "../../../src/config/schema/safety.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { defaultSafety } from "../../harness/policies.ts";

/** Limits for 2,000 nodes with a failure every four seconds, of which a tenth fires within an hour. */
export const permissiveSafety: Safety = {
  ...defaultSafety,
  maxDisrupted: { share: 0.05, amount: 100 },
  maxDisruptedPer: { region: 25, country: null },
  maxInFlight: 30,
  maxActions: { amount: 500, perMs: HOUR_MS },
  breaker: { share: 0.4, amount: 10, withinMs: HOUR_MS },
  cooldownMs: 10 * MINUTE_MS,
  correlated: { by: "region", nodes: 60, share: 0.3, withinMs: 5 * MINUTE_MS },
  efficacy: { window: 50, minSuccess: 0.5 },
};

const verify = (minutes: number) => ({ withinMs: minutes * MINUTE_MS, expect: null });
const disconnect: Step = { action: "disconnect", verify: verify(3) };
const reboot: Step = { action: "reboot", force: false, verify: verify(5) };
const force: Step = { action: "reboot", force: true, verify: verify(5) };
const quarantine = (minutes: number): Step => ({
  action: "quarantine",
  durationMs: minutes * MINUTE_MS,
  reason: "{{policy}}: {{when}} ({{episode}})",
  verify: verify(5),
});

/** Returns a policy in enforce mode, with some of its fields replaced. */
export const policyOf = (overrides: Partial<PolicySpec> & Pick<PolicySpec, "name" | "when">): PolicySpec => ({
  mode: "enforce",
  match: null,
  forMs: 0,
  clearForMs: 5 * MINUTE_MS,
  maxAgeMs: null,
  steps: [reboot, force],
  retry: { episodes: 20, everyMs: 30 * MINUTE_MS, forgetAfterMs: 24 * HOUR_MS },
  windows: [],
  blockedBy: [],
  ...overrides,
});

/**
 * Policies for failures that end within minutes. They fire quickly, and the read before the POST proves each condition.
 */
export const fastPolicies: readonly PolicySpec[] = [
  policyOf({
    name: "reboot-offline",
    when: 'node.status == "offline"',
    forMs: 4 * MINUTE_MS,
    steps: [reboot, force, quarantine(30)],
  }),
  policyOf({
    name: "cool-hot-cpu",
    when: 'node.status == "online" && node.cpu_usage > 0.95',
    steps: [disconnect, reboot, force],
  }),
  policyOf({ name: "stop-leak", when: 'node.status == "online" && node.memory_usage > 0.9', steps: [reboot, force] }),
  policyOf({
    name: "empty-disk",
    when: 'node.status == "online" && node.disk_usage > 0.9',
    steps: [reboot, force, quarantine(30)],
  }),
  policyOf({
    name: "relieve-failing",
    when: 'node.status == "online" && sessions.total >= 10 && sessions.failed_ratio > 0.2',
    forMs: 5 * MINUTE_MS,
    steps: [disconnect, reboot],
  }),
];

/** Combines limits and policies without time intervals. */
export const configWithSafety = (safety: Safety, policies: readonly PolicySpec[]): RemediationConfig => ({
  policies,
  safety,
  time_intervals: [],
});
