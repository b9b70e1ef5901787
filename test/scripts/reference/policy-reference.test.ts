import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { policyJsonSchema, policyReference } from "../../../scripts/reference/config-reference.ts";
import { expressionReference } from "../../../scripts/reference/expression-reference.ts";
import { policyErrors } from "../../config/config-fixtures.ts";
import { validatorOf } from "../../config/json-schema-validator.ts";
import { validPolicy } from "../../config/remediation-sections.ts";

const SECTIONS = `
time_intervals: [{ name: nights, months: [1] }]
prometheus: { url: "http://prometheus:9090" }
alertmanager: { url: "http://alertmanager:9093" }
receivers: [{ name: oncall, alertmanager: true }]
`;

describe("the reference of policies", () => {
  const reference = policyReference(expressionReference(), "policies: []\n");

  test.each([
    "| `name` | name | required | Name of the policy, unique",
    "| `match` | CEL expression | – | Nodes that the policy applies to.",
    "| `clear_for` | duration, 0s to 365d | `10m` | How long",
    "| `retry.every` | duration, 1m to 30d | `6h` | Time from",
    "| `windows` | list of at most 20: name of a time interval | `[]` | Time intervals",
    "| `blocked_by[].alerts` | list of at most 20: matcher | – | Matchers",
  ])("has the row %s", (row) => {
    expect(reference).toContain(row);
  });

  test("has every action, with its keys and defaults", () => {
    for (const action of ["disconnect", "reboot", "quarantine", "notify"])
      expect(reference).toContain(`| \`${action}\` |`);
    expect(reference).toMatch(/\| `disconnect` .*`verify.within` \(duration, 1s to 1d, `3m` by default\)/);
    expect(reference).toMatch(
      /\| `reboot` .*`force` \(boolean, `false` by default\).*`verify.within` \(.*`10m` by default\)/,
    );
    expect(reference).toMatch(
      /\| `quarantine` .*`duration` \(duration, 1m to 30d\).*`verify.within` \(.*`5m` by default\)/,
    );
    expect(reference).toMatch(/\| `notify` .*`receiver` \(name of a receiver\)/);
  });

  test("lists the fields of expressions, and ends with the example", () => {
    expect(reference).toContain("| `node.disk_usage` | double | node detail |");
    expect(reference).toContain("| `ratio(a, b)` |");
    expect(reference).toContain("## Example\n\n```yaml\npolicies: []\n```\n");
  });
});

describe("the JSON Schema of policies", () => {
  test("accepts every policy that the loader accepts", async () => {
    const validate = await validatorOf(policyJsonSchema());
    await fc.assert(
      fc.asyncProperty(validPolicy, async (policy) => {
        const value = { policies: [policy] };
        expect(policyErrors(JSON.stringify(value), SECTIONS)).toEqual([]);
        expect(await validate(value)).toBeNull();
      }),
    );
  });

  const policy = { name: "p", when: "node.a", for: "1m", steps: [{ action: "reboot" }] };
  test.each([
    [{ ...policy, name: "a b" }],
    [{ ...policy, when: "" }],
    [{ ...policy, match: null }],
    [{ ...policy, match: " " }],
    [{ ...policy, for: "soon" }],
    [{ ...policy, steps: [] }],
    [{ ...policy, steps: [{ action: "restart" }] }],
    [{ ...policy, steps: [{ action: "reboot", duration: "1h" }] }],
    [{ ...policy, steps: [{ action: "quarantine" }] }],
    [{ ...policy, steps: [{ action: "notify" }] }],
    [{ ...policy, retry: { episodes: -1 } }],
    [{ ...policy, blocked_by: [{}] }],
    [{ ...policy, blocked_by: [{ alerts: [] }] }],
    [{ ...policy, blocked_by: [{ query: "up", alerts: ["a=b"] }] }],
    [{ ...policy, blocked_by: [{ alerts: ["critical"] }] }],
    [{ ...policy, whan: "x" }],
  ])("rejects what the loader rejects: %j", async (wrong) => {
    const validate = await validatorOf(policyJsonSchema());
    expect(policyErrors(JSON.stringify({ policies: [wrong] }), SECTIONS)).not.toEqual([]);
    expect(await validate({ policies: [wrong] })).not.toBeNull();
  });
});
