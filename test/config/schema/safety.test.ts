import { expect, test } from "vitest";
import { configErrors, loadConfigText, withService } from "../config-fixtures.ts";

const HOUR = 3_600_000;
const MINUTE = 60_000;

test("the default safety is a dry run with small limits", () => {
  expect(loadConfigText(withService("")).safety).toEqual({
    mode: "dry_run",
    trust: { minInventory: 0.8, maxMissing: 0.02, maxUnknown: 0.1, maxFreshestLastSeenMs: 5 * MINUTE, warmupWalks: 2 },
    maxUnhealthy: { share: 0.2 },
    maxDisrupted: { share: 0.05, amount: 5 },
    maxDisruptedPer: { region: 1, country: null },
    minOnlinePer: { region: 1, country: null },
    maxInFlight: 1,
    maxActions: { amount: 6, perMs: HOUR },
    breaker: { share: 0.05, amount: 10, withinMs: HOUR },
    approvalTtlMs: 4 * HOUR,
    cooldownMs: 30 * MINUTE,
    stormCooldownMs: 30 * MINUTE,
    correlated: { by: "region", nodes: 5, share: 0.5, withinMs: 5 * MINUTE },
    canary: true,
    protected: null,
    efficacy: { window: 10, minSuccess: 0.5 },
  });
});

test("every limit is read", () => {
  const text = `
safety:
  mode: enforce
  trust: { min_inventory: 1%, max_missing: 3%, max_unknown: 2%, max_freshest_last_seen: 3m, warmup_walks: 4 }
  max_unhealthy: { percent: 5% }
  max_disrupted: { percent: 6%, amount: 7 }
  max_disrupted_per: { country: 8 }
  min_online_per: { region: 9, country: 10 }
  max_in_flight: 11
  max_actions: { amount: 12, per: 13m }
  breaker: { percent: 14%, amount: 15, within: 16m }
  approval_ttl: 31m
  cooldown: 17m
  storm_cooldown: 18m
  correlated: { by: country, nodes: 19, percent: 20%, within: 21m }
  canary: false
  protected: 'node.name.startsWith("vip-")'
  efficacy: { window: 22, min_success: 23% }
`;
  expect(loadConfigText(withService(text)).safety).toEqual({
    mode: "enforce",
    trust: {
      minInventory: 0.01,
      maxMissing: 0.03,
      maxUnknown: 0.02,
      maxFreshestLastSeenMs: 3 * MINUTE,
      warmupWalks: 4,
    },
    maxUnhealthy: { share: 0.05 },
    maxDisrupted: { share: 0.06, amount: 7 },
    maxDisruptedPer: { region: null, country: 8 },
    minOnlinePer: { region: 9, country: 10 },
    maxInFlight: 11,
    maxActions: { amount: 12, perMs: 13 * MINUTE },
    breaker: { share: 0.14, amount: 15, withinMs: 16 * MINUTE },
    approvalTtlMs: 31 * MINUTE,
    cooldownMs: 17 * MINUTE,
    stormCooldownMs: 18 * MINUTE,
    correlated: { by: "country", nodes: 19, share: 0.2, withinMs: 21 * MINUTE },
    canary: false,
    protected: 'node.name.startsWith("vip-")',
    efficacy: { window: 22, minSuccess: 0.23 },
  });
});

test.each([
  [
    "mode: enforced",
    '3:9: safety.mode: found "enforced"; must be one of dry_run, approve, enforce; did you mean "enforce"?',
  ],
  [
    "max_actions: { amount: 6, within: 1h }",
    "3:29: safety.max_actions.within: unknown key; must be one of amount, per",
  ],
  [
    "max_disrupted: { percent: 0.05 }",
    "3:29: safety.max_disrupted.percent: found 0.05; must be a percentage from 0% to 100%, such as 20%",
  ],
  ["max_disrupted_per: 1", "3:22: safety.max_disrupted_per: found 1; must be a mapping (keys: region, country)"],
  ["max_disrupted_per: {}", "3:3: safety.max_disrupted_per: found no keys; must have region, country or both"],
  ["min_online_per: { zone: 1 }", "3:21: safety.min_online_per.zone: unknown key; must be one of region, country"],
  ["correlated: { nodes: 1 }", "3:24: safety.correlated.nodes: found 1; must be a whole number from 2 to 1000000"],
  ["max_actions: { per: 7d }", '3:23: safety.max_actions.per: found "7d"; must be a duration from 1m to 1d'],
  ["protected: ''", '3:14: safety.protected: found ""; must be a CEL expression'],
  [
    "protected: true",
    "3:14: safety.protected: found true; must be a CEL expression; quote it, or YAML reads it as a boolean",
  ],
  ["protected:", "3:13: safety.protected: found nothing; must be a CEL expression; it may be left out"],
  [
    'protected: node.name == "a" || wrong',
    '3:34: safety.protected: found "wrong"; must be a CEL expression: something is wrong',
  ],
])("an invalid limit is rejected with its position: %s", (text, expected) => {
  expect(configErrors(withService(`safety:\n  ${text}\n`))).toContain(expected);
});
