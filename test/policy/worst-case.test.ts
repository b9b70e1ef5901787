import { describe, expect, test } from "vitest";
import type { PolicySpec, Step } from "../../src/config/schema/policy.ts";
import type { Safety } from "../../src/config/schema/safety.ts";
import type { Mode } from "../../src/model/policy/policy.ts";
import { worstCase } from "../../src/policy/worst-case.ts";
import { defaultSafety } from "../harness/policies.ts";

const HOUR = 3_600_000;
const MINUTE = 60_000;
const REBOOT: Step = { action: "reboot", force: false, verify: { withinMs: 10 * MINUTE, expect: null } };
const NOTIFY: Step = { action: "notify", receiver: "oncall" };

const spec = (name: string, mode: Mode, changes: Partial<PolicySpec> = {}): PolicySpec => ({
  name,
  mode,
  match: null,
  when: "node.status == 'offline'",
  forMs: 15 * MINUTE,
  clearForMs: 10 * MINUTE,
  maxAgeMs: null,
  steps: [NOTIFY, REBOOT],
  retry: { episodes: 2, everyMs: 6 * HOUR, forgetAfterMs: 24 * HOUR },
  windows: [],
  blockedBy: [],
  ...changes,
});

const NONE = { fleet: 0, region: 0, country: 0 };

test("the worst case lists the acting policies and the number of nodes for each safety.mode", () => {
  const policies = [spec("one", "enforce"), spec("two", "approve"), spec("three", "dry_run")];
  const atOnce = { fleet: 5, region: 1, country: 5 };
  const anHour = { fleet: 6, region: 6, country: 6 };
  expect(worstCase({ ...defaultSafety, mode: "approve" }, policies)).toEqual({
    activeMode: "approve",
    modes: {
      dry_run: { automaticPolicies: [], approvalPolicies: [], nodesPerHour: NONE, nodesAtOnce: NONE },
      approve: { automaticPolicies: [], approvalPolicies: ["one", "two"], nodesPerHour: anHour, nodesAtOnce: atOnce },
      enforce: { automaticPolicies: ["one"], approvalPolicies: ["two"], nodesPerHour: anHour, nodesAtOnce: atOnce },
    },
  });
});

test("policies that only notify or never begin an episode act on no node", () => {
  const policies = [
    spec("tells", "enforce", { steps: [NOTIFY] }),
    spec("never", "enforce", { retry: { episodes: 0, everyMs: HOUR, forgetAfterMs: HOUR } }),
  ];
  const idle = { automaticPolicies: [], approvalPolicies: [], nodesPerHour: NONE, nodesAtOnce: NONE };
  expect(worstCase(defaultSafety, policies).modes.enforce).toEqual(idle);
});

const enforced = (changes: Partial<Safety>) =>
  worstCase({ ...defaultSafety, ...changes }, [spec("one", "enforce")]).modes.enforce;

test.each([
  [20, 18],
  [60, 6],
  [90, 6],
  [25, 18],
])("6 actions in %i minutes are at most %i in an hour", (minutes, nodes) => {
  const reach = enforced({ maxActions: { amount: 6, perMs: minutes * MINUTE } });
  expect(reach.nodesPerHour).toEqual({ fleet: nodes, region: nodes, country: nodes });
});

describe("a limit of 0 allows none:", () => {
  test.each<[string, Partial<Safety>]>([
    ["max_unhealthy", { maxUnhealthy: { share: 0 } }],
    ["max_disrupted, its share", { maxDisrupted: { share: 0, amount: 5 } }],
    ["max_disrupted, its amount", { maxDisrupted: { share: 0.5, amount: 0 } }],
    ["max_disrupted_per", { maxDisruptedPer: { region: null, country: 0 } }],
    ["max_in_flight", { maxInFlight: 0 }],
    ["max_actions", { maxActions: { amount: 0, perMs: HOUR } }],
    ["breaker", { breaker: { share: 0, amount: 0, withinMs: HOUR } }],
  ])("%s", (_, changes) => {
    expect(enforced(changes)).toMatchObject({ automaticPolicies: ["one"], nodesPerHour: NONE, nodesAtOnce: NONE });
  });
});

test("the breaker holds every node only if both its limits are 0", () => {
  for (const breaker of [
    { share: 0.1, amount: 0, withinMs: HOUR },
    { share: 0, amount: 3, withinMs: HOUR },
  ]) {
    expect(enforced({ breaker }).nodesAtOnce.fleet).toBe(5);
  }
});

test("a region or country never has more disrupted nodes than its limit or that of the fleet", () => {
  expect(enforced({ maxDisruptedPer: { region: 2, country: 9 } }).nodesAtOnce).toEqual({
    fleet: 5,
    region: 2,
    country: 5,
  });
});
