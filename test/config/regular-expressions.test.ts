import { expect, test } from "vitest";
import { findMatcherProblem, findQueryProblem } from "../../src/config/regular-expressions.ts";

const inMatcher = (pattern: string) => findMatcherProblem(`team=~"${pattern.replaceAll("\\", "\\\\")}"`)?.message;

test.each([
  ["(a", "unterminated group"],
  ["a)", "unmatched ')'"],
  ["*a", "nothing to repeat"],
  ["a**", "nothing to repeat"],
  ["[a", "unterminated character class"],
  ["a{2,1}", "numbers out of order in {} quantifier"],
  ["[z-a]", "range out of order in character class"],
])("%s is invalid in RE2 and in JavaScript", (pattern, message) => {
  expect(inMatcher(pattern)).toBe(message);
});

test.each(["(?i)a", "(?P<name>a)", "[[:alpha:](]", "[](]", "[^](]", String.raw`\Q(\E`, String.raw`\x{2}*`, "^*", "$+"])(
  "%s, which is valid in RE2 only, is accepted",
  (pattern) => {
    expect(inMatcher(pattern)).toBeUndefined();
  },
);

test("only regular expressions of a matcher are checked", () => {
  expect(findMatcherProblem('team="(a"')).toBeNull();
  expect(findMatcherProblem('team!="=~("')).toBeNull();
  expect(findMatcherProblem("team=~(a")).toEqual({ message: "unterminated group", offset: 6 });
  expect(findMatcherProblem('"the team" !~ "(a" ')).toEqual({ message: "unterminated group", offset: 14 });
});

test("every regular expression of a query is checked, but neither other strings nor comments", () => {
  const query = `count(up{job="(", text="=~\\"(", node=~"a.+"} # =~"("
    or up{job!~'[a'}) > 5`;
  expect(findQueryProblem(query)).toEqual({ message: "unterminated character class", offset: query.indexOf("'[a'") });
  expect(findQueryProblem(query.replace("[a", "[a]"))).toBeNull();
  expect(findQueryProblem("up{job=~`(`}")).toMatchObject({ message: "unterminated group" });
});
