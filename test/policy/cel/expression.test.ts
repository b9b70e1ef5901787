import { Environment } from "@marcbachmann/cel-js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileExpression, type Expression } from "../../../src/policy/cel/expression.ts";
import { FIELDS } from "../../../src/policy/cel/fields.ts";
import type { Value } from "../../../src/policy/cel/term.ts";
import { propertyRuns } from "../../harness/run-length.ts";

/** Compiles a valid expression. */
function compiledExpression(text: string): Expression {
  const compiled = compileExpression(text);
  if (!compiled.ok) throw new Error(`${text}: ${compiled.error[0]?.message}`);
  return compiled.value;
}

/** Returns the problem of an invalid expression. */
function compileError(text: string): { message: string; offset: number } {
  const compiled = compileExpression(text);
  if (compiled.ok) throw new Error(`${text}: was accepted`);
  return compiled.error[0]!;
}

/** Evaluates an expression over values by field name. */
function evaluate(text: string, values: Readonly<Record<string, Value>>): boolean | null {
  const { fields, evaluate: run } = compiledExpression(text);
  return run(fields.map(({ name }) => values[name]!));
}

const namesIn = (text: string) => compiledExpression(text).fields.map(({ name }) => name);

describe("CEL on its own", () => {
  test("requires a BigInt for an int: a number fails", () => {
    const run = new Environment().registerVariable("n", "int").parse("n > 1");
    expect(run({ n: 2n })).toBe(true);
    expect(() => run({ n: 2 })).toThrow("not of type 'int'");
  });

  test("reports a type error if an int and a double are compared for equality or added", () => {
    const environment = new Environment().registerVariable("d", "double");
    expect(environment.check("d == 0").valid).toBe(false);
    expect(environment.check("d + 1 > 2.0").valid).toBe(false);
  });

  test("lets short-circuit evaluation hide an error", () => {
    expect(new Environment().registerVariable("n", "int").evaluate("n == 0 || 1 / n > 2", { n: 0n })).toBe(true);
  });
});

describe("ints and doubles", () => {
  test.each(["==", "!=", "<", "<=", ">", ">="])("compare by %s in either order", (operator) => {
    const plain = (a: number, b: number) =>
      ({ "==": a === b, "!=": a !== b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b })[operator];
    for (const value of [0, 0.5, 1]) {
      expect(evaluate(`node.cpu_usage ${operator} 1`, { "node.cpu_usage": value })).toBe(plain(value, 1));
      expect(evaluate(`1 ${operator} node.cpu_usage`, { "node.cpu_usage": value })).toBe(plain(1, value));
      expect(evaluate(`node.uptime_hours ${operator} 0.5`, { "node.uptime_hours": value })).toBe(plain(value, 0.5));
    }
  });

  test("can be added, subtracted, multiplied and looked up together", () => {
    const values = { "node.uptime_hours": 3, "node.bandwidth_gb": 1.5 };
    expect(evaluate("node.uptime_hours + node.bandwidth_gb == 4.5", values)).toBe(true);
    expect(evaluate("node.bandwidth_gb - node.uptime_hours == -1.5", values)).toBe(true);
    expect(evaluate("2 * node.bandwidth_gb == node.uptime_hours", values)).toBe(true);
    expect(evaluate("-node.uptime_hours < -2.5", values)).toBe(true);
    expect(evaluate("node.uptime_hours in [2.5, 3.0]", values)).toBe(true);
    expect(evaluate("node.bandwidth_gb in [1, 2]", values)).toBe(false);
  });
});

describe("time", () => {
  const values = { now: 1_000_000_000, "node.last_seen": 1_000_000_000 - 600_000 };

  test("the age of a timestamp compares with a duration", () => {
    expect(evaluate('now - node.last_seen > duration("9m59s")', values)).toBe(true);
    expect(evaluate('now - node.last_seen > duration("10m")', values)).toBe(false);
    expect(evaluate('node.last_seen < now - duration("5m")', values)).toBe(true);
  });

  test("a duration has the format of the configuration, which has days unlike CEL's", () => {
    expect(evaluate('now - node.last_seen < duration("1d") && now - node.last_seen < duration("1h30m")', values)).toBe(
      true,
    );
    const { message, offset } = compileError('now - node.last_seen > duration("1.5h")');
    expect(message).toContain("such as 30s");
    expect(offset).toBe(32);
  });

  test("a timestamp needs a time zone and an existing day", () => {
    expect(evaluate('node.last_seen < timestamp("1970-01-13T00:00:00+02:00")', values)).toBe(true);
    expect(compileError('node.last_seen < timestamp("2026-02-30T00:00:00Z")').offset).toBe(27);
    expect(compileError('node.last_seen < timestamp("2026-02-03T00:00:00")').message).toContain("with a time zone");
  });
});

describe("a ratio", () => {
  test("is a quotient", () => {
    expect(evaluate("ratio(node.active_sessions, 4) == 0.5", { "node.active_sessions": 2 })).toBe(true);
  });

  test.each([
    "ratio(1, node.active_sessions) > 0.5",
    "ratio(node.active_sessions, node.active_sessions) > 0.5",
    "node.active_sessions > 0 || ratio(1, node.active_sessions) > 0.5",
    "node.active_sessions == 0 && 1 + 2 * -ratio(1, node.active_sessions) > 0.5",
    "node.active_sessions > 0 ? node.uptime_hours > 0 : ratio(1, node.active_sessions) > 0.5",
  ])("by 0 is unknown: %s", (text) => {
    expect(evaluate(text, { "node.active_sessions": 0, "node.uptime_hours": 1 })).toBe(null);
    expect(evaluate(text, { "node.active_sessions": 1, "node.uptime_hours": 1 })).not.toBe(null);
  });

  test.each([
    ["node.active_sessions == 0 || ratio(1, node.active_sessions) > 0.5", true],
    ["node.active_sessions != 0 && ratio(1, node.active_sessions) > 0.5", false],
    ["node.active_sessions == 0 ? node.uptime_hours > 0 : ratio(1, node.active_sessions) > 0.5", true],
  ])("by 0 does not affect a condition that is determined without it: %s", (text, value) => {
    expect(evaluate(text, { "node.active_sessions": 0, "node.uptime_hours": 1 })).toBe(value);
  });

  test("that overflows is unknown, like a sum that overflows", () => {
    const values = { "node.bandwidth_gb": 1e308 };
    expect(evaluate("node.bandwidth_gb * 10 > 1", values)).toBe(null);
    expect(evaluate("ratio(node.bandwidth_gb, 0.001) > 1", values)).toBe(null);
    expect(evaluate("node.bandwidth_gb < 1 || node.bandwidth_gb + node.bandwidth_gb > 1", values)).toBe(null);
  });
});

describe("the fields that an expression names", () => {
  test("are returned once each, in the order of the text", () => {
    const text =
      'node.status == "online" ? node.cpu_usage > fleet.median.cpu_usage : node.cpu_usage > 0.5 || now > node.last_seen';
    expect(namesIn(text)).toEqual(["node.status", "node.cpu_usage", "fleet.median.cpu_usage", "now", "node.last_seen"]);
  });

  test("are found in list members, arguments and ratios", () => {
    expect(namesIn('node.region in ["a"] || node.name.contains(node.version)')).toEqual([
      "node.region",
      "node.name",
      "node.version",
    ]);
    expect(namesIn("-ratio(sessions.error, sessions.total) < 0")).toEqual(["sessions.error", "sessions.total"]);
  });

  test("include every field of a node in the spec, under its own name", () => {
    const fields = "id name status country region ip_address version last_seen uptime_hours active_sessions";
    const details = "bandwidth_gb cpu_usage memory_usage disk_usage created_at updated_at";
    const named = `${fields} ${details}`.split(" ").map((name) => `node.${name}`);
    expect(FIELDS.map(({ name }) => name).filter((name) => name.startsWith("node."))).toEqual(named);
  });

  test("include every field of the table", () => {
    const sides = { string: '== "de"', int: "== 1", double: "== 0.5", timestamp: "== now" };
    const own: Record<string, string> = { "node.id": '== "node_1"', "node.status": '== "offline"' };
    for (const { name, type } of FIELDS) {
      expect(namesIn(`${name} ${own[name] ?? sides[type]}`)).toContain(name);
    }
  });
});

test.each([
  ['node.country == "de"', ["de"]],
  ['!("De" != node.country) && node.name == "de"', ["De"]],
  ['node.country in ["DE", "fr", "nl"]', ["fr", "nl"]],
  ['node.country == "DE" || node.country in ["FR"]', []],
])("a country code that is not in upper case causes a warning: %s", (text, codes) => {
  const compiled = compileExpression(text);
  expect(compiled.ok && compiled.value.warnings()).toEqual(
    codes.map(
      (code) =>
        `compares node.country with "${code}", but country codes are usually in upper case: "${code.toUpperCase()}"`,
    ),
  );
});

test("strings can be compared, looked up in a list and searched", () => {
  const values = { "node.name": "vip-7.example", "node.country": "DE", "node.status": "offline" };
  expect(
    evaluate('node.name.startsWith("vip-") && node.name.contains("7.") && !node.name.endsWith(".org")', values),
  ).toBe(true);
  expect(evaluate('node.country in ["FR", "DE"] && node.status != "online"', values)).toBe(true);
});

test("an expression that is too large is rejected", () => {
  const nested = (depth: number) => `${"(".repeat(depth)}node.uptime_hours > 1${")".repeat(depth)}`;
  expect(compileExpression(nested(20)).ok).toBe(true);
  expect(compileError(nested(100)).message).toBe("the expression is nested too deeply");
  const list = (length: number) => `node.uptime_hours in [${Array.from({ length }, (_, index) => index)}]`;
  expect(compileExpression(list(256)).ok).toBe(true);
  expect(compileError(list(257)).message).toBe("the list is too long");
  expect(compileError(Array(600).fill("node.uptime_hours>1").join("||"))).toEqual({
    message: "the expression has 12598 characters; the maximum is 8192",
    offset: 8192,
  });
  expect(compileError(`node.uptime_hours > ${Array(1000).fill("1").join("+")}`).message).toBe(
    "the expression has too many parts",
  );
  expect(compileError(`node.uptime_hours > ${"-".repeat(8000)}1`).message).toBe("the expression has too many parts");
});

test("any text compiles to an expression or a problem with a position in the text", () => {
  const tokens = [
    ...["node.status", "node.cpu_usage", "now", "node", '"online"', '"', "'", "1", "0.5", "1u", "null", "true", "b'x'"],
    ...[
      "==",
      "!",
      "!=",
      "<",
      "&&",
      "||",
      "?",
      ":",
      "+",
      "-",
      "*",
      "/",
      "%",
      "in",
      "(",
      ")",
      "[",
      "]",
      "{",
      "}",
      ".",
      ",",
    ],
    ...["has(", "ratio(", 'duration("1h")', "exists(", ".contains(", ".map(x,", "cel.bind(", "//", "\n", "€"],
  ];
  const soup = fc.array(fc.constantFrom(...tokens), { maxLength: 12 }).map((parts) => parts.join(" "));
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), soup), (text) => {
      const compiled = compileExpression(text);
      if (compiled.ok) return compiled.value.fields.length > 0;
      if (compiled.error.length === 0) return false;
      return compiled.error.every(({ offset, message }) => offset >= 0 && offset <= text.length && message !== "");
    }),
    propertyRuns(3_000),
  );
});
