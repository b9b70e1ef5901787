import { describe, expect, test } from "vitest";
import { compileExpression } from "../../../src/policy/cel/expression.ts";

/** What is said of a text, and where in it: `@` stands before the place. */
function refusal(marked: string): string {
  const offset = marked.indexOf("@");
  const compiled = compileExpression(marked.replace("@", ""));
  if (compiled.ok) return "taken";
  return compiled.error.offset === offset
    ? compiled.error.message
    : `at ${compiled.error.offset}: ${compiled.error.message}`;
}

describe("an expression is refused, at its place,", () => {
  test.each([
    ["@", "the expression is empty"],
    ["@ \n", "the expression is empty"],
    ['node.uptime_hours > 1 && @node.staus == "offline"', "unknown field node.staus; did you mean node.status?"],
    ['@status == "offline"', "unknown field status; did you mean node.status?"],
    ["@fleet.cpu_usage > 0.5", "unknown field fleet.cpu_usage; did you mean fleet.median.cpu_usage?"],
    ["@node.constructor == 1", "unknown field node.constructor"],
  ])("for what it reads: %s", (text, message) => {
    expect(refusal(text)).toBe(message);
  });

  test.each([
    ["@node == node", "node is no value by itself; name a field of it, such as node.id"],
    ["0.5 < @fleet.median", "fleet.median is no value by itself; name a field of it, such as fleet.median.cpu_usage"],
    ['@node["status"] == "offline"', "fields must be written as node.status, not with [ ]"],
    ["@has(node.status)", "has is refused: a field that is missing is unknown by itself"],
    ["node.name == @null", "null is refused: a field that is missing is unknown by itself"],
    ["@dyn(node.name) == 1", "dyn is refused: it would hide the type of what it wraps"],
  ])("for hiding what it reads: %s", (text, message) => {
    expect(refusal(text)).toBe(message);
  });

  test.each([
    ["@node.name", "the expression must be true or false, and is of the type string"],
    ["@node.uptime_hours + 1", "the expression must be true or false, and is of the type int"],
    ["@now - node.last_seen", "the expression must be true or false, and is of the type duration"],
    ["@node.name == 5", "string == int is not possible, in node.name == 5"],
    [
      "node.uptime_hours > 1 && @now - node.last_seen > 600",
      "duration > int is not possible, in now - node.last_seen > 600",
    ],
    ["@node.last_seen > 5", "timestamp > int is not possible, in node.last_seen > 5"],
    ["@node.name.contains(5)", "string.contains(int) is not possible, in node.name.contains(5)"],
    [
      "@node.name ? node.uptime_hours > 1 : node.uptime_hours > 2",
      "ternary condition must be bool, got 'string', in node.name",
    ],
    ['@node.name + "x" == "yx"', "strings can't be concatenated"],
  ])("for its types: %s", (text, message) => {
    expect(refusal(text)).toBe(message);
  });

  test.each([
    ['node.status @= "offline"', "unexpected =; did you mean ==?"],
    ["node.uptime_hours > 1 @and node.uptime_hours < 5", "unexpected and; did you mean &&?"],
    ["node.uptime_hours > 1 &&@", "the expression ends too early"],
    ["(node.uptime_hours > 1@", "the expression ends too early; expected )"],
    ['node.name == @"abc', "unterminated string"],
  ])("for its grammar: %s", (text, message) => {
    expect(refusal(text)).toBe(message);
  });

  test.each([
    [
      '@node.name.matches("(a+)+$")',
      "matches is refused: regular expressions can take unbounded time; use contains, startsWith or endsWith",
    ],
    [
      "@node.active_sessions / node.uptime_hours > 2",
      "/ is refused: a division by 0 has no value; use ratio(a, b), which is unknown if b is 0",
    ],
    ["@node.uptime_hours % 24 == 0", "% is refused: the remainder by 0 is undefined"],
    ['@["a"].exists(x, node.name == x)', "exists is refused: write the cases out, joined by || or &&"],
    ["@node.last_seen.getHours() > 3", expect.stringMatching(/^unknown function getHours; there are duration,/)],
    ['@contans(node.name, "a")', "unknown function contans; did you mean contains?"],
    ['@contains(node.name, "a")', 'contains is written TEXT.contains("eu")'],
    ["@ratio(node.uptime_hours) > 1", "ratio is written ratio(a, b)"],
    ["now - node.last_seen > @duration(node.name)", 'duration takes a text that is written out, as in duration("10m")'],
    ["@[1] == [node.uptime_hours]", "a list is only allowed after in"],
    ["node.uptime_hours in @{1: 2}", expect.anything()],
    ["node.uptime_hours == @5u", "neither bytes nor unsigned numbers are of use here"],
    ["node.uptime_hours < @9007199254740992", "a whole number is at most 2^53 - 1"],
  ])("for what it calls: %s", (text, message) => {
    expect(refusal(text)).toEqual(message);
  });

  test.each([
    ['node.status == @"ofline"', '"ofline" is no state of a node; did you mean "offline"?'],
    ['@"offlin" != node.status', '"offlin" is no state of a node; did you mean "offline"?'],
    ['node.status in ["online", @"Rebooting"]', '"Rebooting" is no state of a node; did you mean "rebooting"?'],
    ['node.status == @"down-and-out"', expect.stringContaining("one is online, offline,")],
    ['node.status == @"unknown"', expect.stringContaining("the verdict is unknown")],
    ['node.country in ["DE", @"GER"]', 'node.country is two letters, so it is never "GER"'],
    ['node.id in [@"vip-1"]', 'node.id begins with node_, so it is never "vip-1"'],
    ["node.cpu_usage > @90", "node.cpu_usage is a ratio from 0 to 1, so 90 % is written 0.9"],
    ["fleet.online_ratio < @50", "fleet.online_ratio is a ratio from 0 to 1, so 90 % is written 0.9"],
    ["node.cpu_usage > @-1", "node.cpu_usage is a ratio from 0 to 1, so 90 % is written 0.9"],
    ['node.region != @""', expect.stringContaining("node.region is never an empty text")],
    ['node.name.startsWith(@"")', "every string contains the empty string"],
    ["node.name in @[]", "an empty list never matches"],
    ["node.uptime_hours > 1 || @true", "this reads no field, so it has the same value for every node"],
    ["@1 == 1", "this reads no field, so it has the same value for every node"],
    ["@true", "this reads no field, so it has the same value for every node"],
    ['node.uptime_hours > 1 && @"a" in ["a"]', "this reads no field, so it has the same value for every node"],
    ['@node.version < "1.10"', expect.stringContaining('"1.10" sorts before "1.9"')],
  ])("for what would hold always or never: %s", (text, message) => {
    expect(refusal(text)).toEqual(message);
  });
});
