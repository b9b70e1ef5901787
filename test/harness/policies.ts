import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { PolicySpec, Step } from "../../src/config/schema/policy.ts";
import { type Safety, safetySchema } from "../../src/config/schema/safety.ts";
import type { RemediationConfig } from "../../src/remediation/context.ts";

/** The default safety, but enforced. */
export const defaultSafety: Safety = safetySchema.parse({ mode: "enforce" });

const verify = (minutes: number) => ({ withinMs: minutes * MINUTE_MS, expect: null });

/** The steps that most policies of the tests have. */
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

/** Returns a policy that reboots offline nodes, with the changes of the test. */
export const rebootOffline = (changed: Partial<PolicySpec> = {}): PolicySpec => ({
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

/** The node is given up after one episode. */
export const withoutRetries: PolicySpec["retry"] = { episodes: 1, everyMs: 6 * HOUR_MS, forgetAfterMs: 24 * HOUR_MS };

/** Returns a configuration with the default safety, enforced, with the changes of the test. */
export const remediationConfig = (
  policies: readonly PolicySpec[],
  safety: Partial<Safety> = {},
): RemediationConfig => ({
  policies,
  safety: { ...defaultSafety, ...safety },
  time_intervals: [],
});

/** Limits that hold nothing: a test sets those that it is about. */
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
