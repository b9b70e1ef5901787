import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canHold } from "../../../src/policy/cel/constancy.ts";
import { compileExpression } from "../../../src/policy/cel/expression.ts";
import { propertyRuns } from "../../harness/run-length.ts";

function warningsAbout(text: string): readonly string[] {
  const compiled = compileExpression(text);
  if (!compiled.ok) throw new Error(`${text}: ${compiled.error[0]?.message}`);
  return compiled.value.warnings();
}

const allStatuses = '["online", "offline", "quarantined", "rebooting", "maintenance"]';

describe("a condition that never holds causes a warning", () => {
  test.each([
    ['node.status == "offline" && node.status == "rebooting"', "node.status"],
    ['node.status == "offline" && !(node.status in ["offline"])', "node.status"],
    [`!(node.status in ${allStatuses})`, "node.status"],
    ['node.country in ["DE", "FR"] && node.country in ["NL"]', "node.country"],
    ["node.cpu_usage > 0.9 && node.cpu_usage < 0.5", "node.cpu_usage"],
    ["0.9 < node.cpu_usage && node.uptime_hours > 1 && 0.9 >= node.cpu_usage", "node.cpu_usage, node.uptime_hours"],
    ['now - node.last_seen > duration("10m") && now - node.last_seen < duration("5m")', "now, node.last_seen"],
    [
      "node.active_sessions > sessions.total && node.active_sessions <= sessions.total",
      "node.active_sessions, sessions.total",
    ],
    ['node.name.startsWith("vip-") && !node.name.startsWith("vip-")', "node.name"],
    ["node.uptime_hours > 1 ? node.uptime_hours < 1 : node.uptime_hours > 2", "node.uptime_hours"],
    ["node.uptime_hours < 0", "node.uptime_hours"],
    ["sessions.active <= -1", "sessions.active"],
  ])("%s", (text, fields) => {
    expect(warningsAbout(text)).toEqual([`never holds, whatever the value of ${fields}`]);
    expect(warningsAbout(`!(${text})`)).toEqual([`always holds, whatever the value of ${fields}`]);
  });
});

test("a comparison with a number so large that adding 1 does not change it causes no warning", () => {
  expect(warningsAbout("node.bandwidth_gb >= 1e17")).toEqual([]);
});

test.each([
  ['node.status != "offline" || node.status != "rebooting"', "node.status"],
  ["node.uptime_hours > 1 || node.uptime_hours < 5", "node.uptime_hours"],
  ['node.region == "a" || node.region != "a"', "node.region"],
])("a condition that always holds is warned about: %s", (text, fields) => {
  expect(warningsAbout(text)).toEqual([`always holds, whatever the value of ${fields}`]);
});

test("a part of a condition that is constant is warned about, and the parts of that part are not", () => {
  expect(
    warningsAbout('node.uptime_hours > 5 || (node.region == "a" && node.region == "b" && node.region == "c")'),
  ).toEqual(["has a part that never holds, whatever the value of node.region"]);
});

test.each([
  'node.status == "offline" || node.status == "rebooting"',
  'node.status != "offline" && node.status != "rebooting"',
  "node.cpu_usage > 0.5 && node.cpu_usage < 0.9",
  "node.cpu_usage >= 0.5 && node.cpu_usage <= 0.5",
  'node.name.startsWith("vip-") && node.name.endsWith("-1")',
  'node.status == "offline" && now - node.last_seen > duration("10m")',
  "node.cpu_usage > 0.9 && fleet.median.cpu_usage < 0.5",
  "node.cpu_usage > fleet.median.cpu_usage && node.cpu_usage > region.median.cpu_usage",
  "node.active_sessions > 3 && sessions.total < 3",
  "node.active_sessions - sessions.total < 0",
  "node.uptime_hours <= 0",
  "node.uptime_hours > node.active_sessions && node.active_sessions > node.uptime_hours - 5",
])("a condition that may hold, and may not, causes no warning: %s", (text) => {
  expect(warningsAbout(text)).toEqual([]);
});

test("a condition with too many combinations causes warnings about its parts only", () => {
  const fields = ["uptime_hours", "active_sessions", "bandwidth_gb", "cpu_usage", "memory_usage", "disk_usage"];
  const range = (field: string) => `node.${field} > 0.1 && node.${field} < 0.3 && node.${field} != 0.2`;
  const wide = fields
    .map((field) => range(field).replaceAll(/0\.(\d)/g, field.includes("usage") ? "0.$1" : "$1"))
    .join(" && ");
  expect(warningsAbout(wide)).toEqual([]);
  expect(warningsAbout(`${wide} && (node.region == "a" && node.region == "b")`)).toEqual([
    "has a part that never holds, whatever the value of node.region",
  ]);
});

describe("warnings about random conditions", () => {
  const number = fc.integer({ min: 0, max: 4 });
  const comparison = fc
    .tuple(
      fc.constantFrom("node.uptime_hours", "node.active_sessions", "node.uptime_hours - node.active_sessions"),
      fc.constantFrom("==", "!=", "<", "<=", ">", ">="),
      fc.oneof(number.map(String), fc.constant("sessions.total")),
      fc.boolean(),
    )
    .map(([subject, operator, other, isSwapped]) =>
      isSwapped ? `(${other} ${operator} ${subject})` : `(${subject} ${operator} ${other})`,
    );
  const { condition } = fc.letrec<{ condition: string }>((tie) => ({
    condition: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      comparison,
      fc.tuple(tie("condition"), fc.constantFrom("&&", "||"), tie("condition")).map((parts) => `(${parts.join(" ")})`),
      tie("condition").map((part) => `!${part}`),
      fc.tuple(tie("condition"), tie("condition"), tie("condition")).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
    ),
  }));

  test("are true for every node", () => {
    fc.assert(
      fc.property(
        condition,
        fc.array(fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 3, maxLength: 3 })),
        (text, records) => {
          const compiled = compileExpression(text);
          if (!compiled.ok) return;
          const { fields, evaluate, warnings } = compiled.value;
          const [warning = ""] = warnings();
          for (const record of records) {
            const result = evaluate(fields.map((_, index) => record[index]!));
            if (warning.startsWith("never holds")) expect(result).toBe(false);
            if (warning.startsWith("always holds")) expect(result).toBe(true);
          }
        },
      ),
      propertyRuns(2_000),
    );
  });
});

test.each([
  ["node.cpu_usage > 0.9", false],
  ["!(node.cpu_usage > 0.9)", false],
  ['node.status == "online" && node.cpu_usage > 0.9', false],
  ['node.status == "offline" || node.cpu_usage > 0.9', true],
  ['!(node.status == "online" && node.cpu_usage < 0.9)', true],
  ['!(node.status == "online" || node.cpu_usage < 0.9)', false],
  ['node.status == "online" ? node.cpu_usage > 0.9 : node.uptime_hours > 1', true],
  ["node.cpu_usage > 0.9 ? node.uptime_hours > 1 : node.uptime_hours > 2", false],
])("whether a condition can hold while usage is unknown: %s is %s", (text, expected) => {
  const compiled = compileExpression(text);
  if (!compiled.ok) throw new Error(text);
  expect(canHold(compiled.value.condition, ({ isUsage }) => isUsage)).toBe(expected);
});
