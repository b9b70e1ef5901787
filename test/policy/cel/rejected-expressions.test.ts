import { describe, expect, test } from "vitest";
import { compileExpression } from "../../../src/policy/cel/expression.ts";

/** Returns why an expression is rejected. `@` marks the expected position in the text. */
const problemOf = (marked: string): string => problemsOf(marked).join("; also: ");

/** Returns every problem of an expression. Each `@` marks the expected position of one. */
function problemsOf(marked: string): readonly string[] {
  const offsets = [...marked.matchAll(/@/g)].map(({ index }, earlier) => index - earlier);
  const compiled = compileExpression(marked.replaceAll("@", ""));
  if (compiled.ok) return ["accepted"];
  return compiled.error.map(({ message, offset }, index) =>
    offset === offsets[index] ? message : `at ${offset}: ${message}`,
  );
}

describe("an expression is rejected, with the position,", () => {
  test.each([
    ["@", "the expression is empty"],
    ["@ \n", "the expression is empty"],
    ['node.uptime_hours > 1 && @node.staus == "offline"', "unknown field node.staus; did you mean node.status?"],
    ['@status == "offline"', "unknown field status; did you mean node.status?"],
    ["@fleet.cpu_usage > 0.5", "unknown field fleet.cpu_usage; did you mean fleet.median.cpu_usage?"],
    ["node.cpu_usage > @region.median.cpu", "unknown field region.median.cpu; did you mean region.median.cpu_usage?"],
    ["node.status == @offline", 'unknown field offline; text is written in quotes, as in "offline"'],
    [
      "@node.constructor == 1",
      expect.stringMatching(/^unknown field node\.constructor; the fields of node are id, name, status, /),
    ],
    ["@node.load > 1", expect.stringContaining("the fields of node are ")],
    ["@nodes.load > 1", "unknown field nodes.load; fields belong to node, sessions, fleet or region"],
    ['@nodes.name == "a"', "unknown field nodes.name; did you mean node.name?"],
  ])("for an unknown field: %s", (text, message) => {
    expect(problemOf(text)).toEqual(message);
  });

  test.each([
    ['@region == "eu-west"', "region is not a field; did you mean node.region?"],
    ["@node == node", "node is not a field; name one of its fields, such as node.id"],
    ["0.5 < @fleet.median", "fleet.median is not a field; name one of its fields, such as fleet.median.cpu_usage"],
    ['@node["status"] == "offline"', "fields must be written as node.status, not with [ ]"],
    ["@has(node.status)", "has is not supported: a missing field is already unknown"],
    ["node.name == @null", "null is not supported: a missing field is already unknown"],
    ["@dyn(node.name) == 1", "dyn is not supported: it hides the type of its argument"],
  ])("for not naming a field directly: %s", (text, message) => {
    expect(problemOf(text)).toBe(message);
  });

  test.each([
    ["@node.name", "the expression must be true or false, but its type is string"],
    ["@node.uptime_hours + 1", "the expression must be true or false, but its type is int"],
    ["@now - node.last_seen", "the expression must be true or false, but its type is duration"],
    ["@node.name == 5", "string == int is not supported, in node.name == 5"],
    [
      "node.uptime_hours > 1 && @now - node.last_seen > 600",
      'duration > int is not supported, in now - node.last_seen > 600; write durations as duration("10m")',
    ],
    [
      'node.uptime_hours > 1 && @now - node.last_seen > "10m"',
      'duration > string is not supported, in now - node.last_seen > "10m"; write durations as duration("10m")',
    ],
    ['node.last_seen < @now - "10m"', 'strings can\'t be added or subtracted; write durations as duration("10m")'],
    ['(@node.name) == (5) && node.name.contains("(")', "string == int is not supported, in (node.name) == (5)"],
    ["@node.last_seen > 5", "timestamp > int is not supported, in node.last_seen > 5"],
    ["@node.name.contains(5)", "string.contains(int) is not supported, in node.name.contains(5)"],
    [
      "@node.name ? node.uptime_hours > 1 : node.uptime_hours > 2",
      "ternary condition must be bool, got 'string', in node.name",
    ],
    ['@node.name + "x" == "yx"', "strings can't be added or subtracted"],
  ])("for its types: %s", (text, message) => {
    expect(problemOf(text)).toBe(message);
  });

  test.each([
    ['node.status @= "offline"', "unexpected =; did you mean ==?"],
    ["node.uptime_hours > 1 @and node.uptime_hours < 5", "unexpected and; did you mean &&?"],
    ["node.uptime_hours < 1 @OR node.uptime_hours > 5", "unexpected OR; did you mean ||?"],
    ['NOT @node.name == "a"', "unexpected node; did you mean ! instead of not?"],
    [
      'node.name @=~ "fra-.*"',
      "unexpected =~: regular expressions are not supported; use contains, startsWith or endsWith",
    ],
    [
      'node.name @!~ "fra-.*"',
      "unexpected !~: regular expressions are not supported; use contains, startsWith or endsWith",
    ],
    ['not @node.name == "a"', "unexpected node; did you mean ! instead of not?"],
    ['node.status <@> "online"', "unexpected >; did you mean != instead of <>?"],
    ["now - node.last_seen > 10@m", 'unexpected m; did you mean duration("10m")?'],
    ["now - node.last_seen > 2.5@h", 'unexpected h; did you mean duration("2h30m")?'],
    ["now - node.last_seen > 1@h30m && node.uptime_hours > 5", 'unexpected h30m; did you mean duration("1h30m")?'],
    ["node.cpu_usage > 95%@", "the expression ends unexpectedly; write a share as a ratio, such as 0.9 for 90%"],
    ["node.uptime_hours > 1 &&@", "the expression ends unexpectedly"],
    ["(node.uptime_hours > 1@", "the expression ends unexpectedly; expected )"],
    ['node.name == @"abc', "unterminated string"],
  ])("for its syntax: %s", (text, message) => {
    expect(problemOf(text)).toBe(message);
  });

  test.each([
    [
      '@node.name.matches("(a+)+$")',
      "matches is not supported: regular expressions can take unbounded time; use contains, startsWith or endsWith",
    ],
    [
      "@node.active_sessions / node.uptime_hours > 2",
      "/ is not supported: a division by 0 has no value; use ratio(a, b), which is unknown if b is 0",
    ],
    ["@node.uptime_hours % 24 == 0", "% is not supported: a division by 0 has no remainder"],
    ['@["a"].exists(x, node.name == x)', "exists is not supported: write each case and join them with || or &&"],
    [
      "@node.last_seen.getHours() > 3",
      expect.stringMatching(/^unknown function getHours; the functions are duration,/),
    ],
    ['@contans(node.name, "a")', "unknown function contans; did you mean contains?"],
    ['@contains(node.name, "a")', 'write it as TEXT.contains("eu")'],
    ["@ratio(node.uptime_hours) > 1", "write it as ratio(a, b)"],
    ["now - node.last_seen > @duration(node.name)", 'duration needs a string constant, as in duration("10m")'],
    ["@[1] == [node.uptime_hours]", "a list is only allowed after in"],
    ["node.uptime_hours in @{1: 2}", expect.anything()],
    ["node.uptime_hours == @5u", "bytes and unsigned integers are not supported"],
    ["node.uptime_hours < @9007199254740992", "integers can be at most 2^53 - 1"],
  ])("for unsupported syntax or functions: %s", (text, message) => {
    expect(problemOf(text)).toEqual(message);
  });

  test.each([
    ['node.status == @"ofline"', '"ofline" is not a node status; did you mean "offline"?'],
    ['@"offlin" != node.status', '"offlin" is not a node status; did you mean "offline"?'],
    ['node.status in ["online", @"Rebooting"]', '"Rebooting" is not a node status; did you mean "rebooting"?'],
    ['node.status == @"down-and-out"', expect.stringContaining("the statuses are online, offline,")],
    ['node.status == @"unknown"', expect.stringContaining("the verdict is unknown")],
    ['node.country in ["DE", @"GER"]', 'node.country is two letters, so it is never "GER"'],
    ['node.id in [@"vip-1"]', 'node.id begins with node_, so it is never "vip-1"'],
    ["node.cpu_usage > @90", "node.cpu_usage is a ratio from 0 to 1; write 0.9 for 90%"],
    ["fleet.online_ratio < @50", "fleet.online_ratio is a ratio from 0 to 1; write 0.9 for 90%"],
    ["node.cpu_usage > @-1", "node.cpu_usage is a ratio from 0 to 1; write 0.9 for 90%"],
    ['node.region != @""', expect.stringContaining("node.region is never empty")],
    ['node.name.startsWith(@"")', "every string contains the empty string"],
    ["node.name in @[]", "an empty list never matches"],
    ["node.uptime_hours > 1 || @true", "this reads no field, so it has the same value for every node"],
    ["@1 == 1", "this reads no field, so it has the same value for every node"],
    ["@true", "this reads no field, so it has the same value for every node"],
    ['node.uptime_hours > 1 && @"a" in ["a"]', "this reads no field, so it has the same value for every node"],
    ['@node.version < "1.10"', expect.stringContaining('"1.10" sorts before "1.9"')],
  ])("for a condition that always or never holds: %s", (text, message) => {
    expect(problemOf(text)).toEqual(message);
  });

  test.each([
    [
      "@node.name == 5 && (@node.last_seen > 5 || !(@node.version == 1))",
      [
        "string == int is not supported, in node.name == 5",
        "timestamp > int is not supported, in node.last_seen > 5",
        "string == int is not supported, in node.version == 1",
      ],
    ],
    [
      '@node.staus == "offline" && @node.name == 5 && node.uptime_hours > 1 && @node.uptime_hours % 24 == 0',
      [
        "unknown field node.staus; did you mean node.status?",
        "string == int is not supported, in node.name == 5",
        "% is not supported: a division by 0 has no remainder",
      ],
    ],
    [
      'node.status == @"ofline" || node.cpu_usage > @90',
      [
        '"ofline" is not a node status; did you mean "offline"?',
        "node.cpu_usage is a ratio from 0 to 1; write 0.9 for 90%",
      ],
    ],
    ["@1 == 1 || @true", Array(2).fill("this reads no field, so it has the same value for every node")],
  ])("for each of its problems: %s", (text, messages) => {
    expect(problemsOf(text)).toEqual(messages);
  });

  test.each([
    ["a sum of the wrong types in a comparison", "(@node.name + 1) > 2 && node.uptime_hours > 1"],
    ["a condition of a choice that is not a boolean", "@node.name ? node.uptime_hours > 1 : node.uptime_hours > 2"],
    ["a list of several types", 'node.name in ["a", @1]'],
    ["a comparison without a field", "@true == true"],
    ["an unknown field", "(@node.staus > 5) == true"],
  ])("once for %s", (_, text) => {
    expect(problemsOf(text)).toEqual([expect.not.stringMatching(/^at /)]);
  });
});
