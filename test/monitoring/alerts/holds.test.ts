import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { HOLD_MS_MAX, HOLD_REASON_ROWS, HOLD_REASONS, type HoldReason } from "../../../src/policy/decision.ts";
import { enforcedShippedPolicies } from "../../harness/shipped-policies.ts";
import { textOf } from "../repository-files.ts";

const { safety } = enforcedShippedPolicies().config;

/** Maximum duration of a hold without an alert, with the shipped configuration. */
const LASTS_MS: Partial<Record<HoldReason, number>> = {
  storm_cooldown: safety.stormCooldownMs,
  cooldown: safety.cooldownMs,
};

const alertOf = (reason: HoldReason): string | null => HOLD_REASON_ROWS[reason].alert ?? null;
const rules = ["daemon", "remediation"].map((name) => textOf(`config/prometheus/rules/${name}.yml`)).join("");

test("every hold ends automatically within 6 h or has an alert that fires before", () => {
  expect(HOLD_MS_MAX).toBe(6 * HOUR_MS);
  const withoutAlert = HOLD_REASONS.filter((reason) => alertOf(reason) === null);
  expect(withoutAlert.toSorted()).toEqual(Object.keys(LASTS_MS).toSorted());
  for (const reason of withoutAlert) expect(LASTS_MS[reason], reason).toBeLessThan(HOLD_MS_MAX);
});

test("the alerts of holds exist, and fire within 6 h", () => {
  for (const reason of HOLD_REASONS) {
    const alert = alertOf(reason);
    if (alert !== null) expect(rules, reason).toContain(`- alert: ${alert}\n`);
  }
  const [, hours, minutes] = /proxywarden_longest_hold_seconds\[5m\]\) > (\d+) \* 3600 .*\n\s+for: (\d+)m/.exec(rules)!;
  expect(Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS).toBeLessThan(HOLD_MS_MAX);
});
