import { expect, test } from "vitest";
import { formatProblem } from "../../../src/config/diagnostics/problem.ts";
import { loadPolicyTests } from "../../../src/config/policy-test-file.ts";
import { sourceOf } from "../config-fixtures.ts";

/** The problems of a policy test whose node and expectation have these fields. `keys`: further lines of the file. */
function nodeProblems(fields: string, keys = "", expectation = "timer: inactive"): readonly string[] {
  const text = `policies: [a.yaml]
${keys}tests:
  - name: x
    nodes: [{ id: node_1, ${fields} }]
    expect: [{ at: 5m, node: node_1, ${expectation} }]
`;
  const loaded = loadPolicyTests(sourceOf(text));
  return loaded.ok ? [] : loaded.error.map(formatProblem);
}

const expected = "must be a status, such as online, or a list over time, such as [online for 10m, …]";
const where = "tests[0].nodes[0].status";

test.each([
  ["[{ onl: 1 }]", `p.yaml:4:36: ${where}[0]: found the key onl; ${expected}`],
  ["[[online]]", `p.yaml:4:36: ${where}[0]: found a list; ${expected}`],
  ["[online for 5m, -1]", `p.yaml:4:51: ${where}[1]: found -1; ${expected}`],
  ["[online for 5, offline]", `p.yaml:4:36: ${where}[0]: found "online for 5"; ${expected}`],
  ["[online, offlin]", `p.yaml:4:44: ${where}[1]: found "offlin"; ${expected}`],
  [
    "[online for 5m, offline, online]",
    `p.yaml:4:51: ${where}[1]: found "offline"; must have a duration, as in "offline for 10m"; only the last value of a list needs none`,
  ],
  ["[]", `p.yaml:4:35: ${where}: found an empty list; ${expected}`],
  ["{ onl: 1 }", `p.yaml:4:27: ${where}: found the key onl; ${expected}`],
])("a status of %s over time is refused with what would be right", (status, problem) => {
  expect(nodeProblems(`status: ${status}`)).toEqual([problem]);
});

test.each(["cpu_usage", "active_sessions", "bandwidth_gb"])("an empty %s is refused", (field) => {
  for (const empty of ['""', '" "', '["", 1]']) {
    expect(nodeProblems(`${field}: ${empty}`)).toEqual([expect.stringMatching(/found "\s*"; must be a/)]);
  }
});

test.each([
  ["", "tests[0].expect[0]: found the keys at, node; must have at least one of verdict, timer, held, actions"],
  [
    "policy: a",
    "tests[0].expect[0]: found the keys at, node, policy; must have at least one of verdict, timer, held, actions",
  ],
  [
    "actions: [reboot: verified]",
    "tests[0].expect[0].actions[0]: found a mapping; must be an action; quote it, or YAML reads it as a mapping",
  ],
])("an expectation that would not test anything, or not what it says, is refused: %s", (expectation, problem) => {
  expect(nodeProblems("status: online", "", expectation)).toEqual([expect.stringContaining(problem)]);
});

test("a start on a day that the month does not have is refused", () => {
  expect(nodeProblems("status: online", "start: 2026-02-30T12:00:00Z\n")).toEqual([
    expect.stringContaining('start: found "2026-02-30T12:00:00Z"; must be'),
  ]);
});
