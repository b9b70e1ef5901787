// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are YAML, and hold its variables
import { describe, expect, test } from "vitest";
import { type ConfigProblem, formatProblem, PROBLEMS_MAX } from "../../../src/config/diagnostics/problem.ts";
import { loadPolicyTests } from "../../../src/config/policy-test-file.ts";
import { httpClientSchema } from "../../../src/config/schema/http-client.ts";
import { loadScenario } from "../../../src/config/schema/scenario.ts";
import { readYaml } from "../../../src/config/yaml-reader.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { configErrors, configProblems, loadWith, readWebText, sourceOf, withService } from "../config-fixtures.ts";

/** Characters that the longest answer may have: a few screens. */
const ANSWER_LENGTH_MAX = 50_000;

/** Almost as long as a file may be; in the short form a tenth of it. */
const TEXT_LENGTH = isLongRun ? 120_000 : 12_000;

const repeatToLength = (unit: string) => unit.repeat(TEXT_LENGTH / unit.length);

const numberedLines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join("");

const errorsOf = (result: { readonly ok: boolean; readonly error?: readonly ConfigProblem[] }) => result.error ?? [];

/** Loads each kind of file. All kinds share one reader. */
const readers: Readonly<Record<string, (text: string) => readonly ConfigProblem[]>> = {
  "a configuration": configProblems,
  "a policy file": (text) => errorsOf(loadWith(withService("policies: [a.yaml]\n"), { "a.yaml": text })),
  "a file of policy tests": (text) => errorsOf(loadPolicyTests(sourceOf(text))),
  "a scenario": (text) => errorsOf(loadScenario({ file: "p.yaml", text, env: {} })),
  "a web configuration": (text) => errorsOf(readWebText("web.yml", text)),
  "an HTTP client configuration": (text) =>
    errorsOf(readYaml(httpClientSchema, { file: "p.yaml", text, env: {} }, () => [])),
};

const hostile: Readonly<Record<string, string>> = {
  "aliases of no anchor": `a: [${repeatToLength("*a,")}]`,
  "lines with an alias of no anchor": `a:\n${repeatToLength("- *a\n")}`,
  "values in one list": `a: [${repeatToLength("1,")}]`,
  "unknown keys": numberedLines(TEXT_LENGTH / 12, (index) => `k${index}: 1\n`),
  "one key given thousands of times": repeatToLength("a: 1\n"),
  "one list given thousands of times": numberedLines(TEXT_LENGTH / 15, () => "policies: []\n"),
  "empty keys": repeatToLength(":\n"),
  "keys that are no words": repeatToLength("?\n"),
  tags: repeatToLength("- !x 1\n"),
  "a long key": `? ${repeatToLength("x")}\n: 1\n`,
  "a long number": `a: ${repeatToLength("1")}\n`,
  "a long text": `a: ${repeatToLength("x")}\n`,
  "line breaks in quotes that do not close": repeatToLength("' \" \n"),
  "levels of lists": "[".repeat(TEXT_LENGTH / 12),
  "levels of mappings": "{a: ".repeat(TEXT_LENGTH / 12),
  "600 levels of indentation": numberedLines(600, (index) => `${" ".repeat(index)}a:\n`),
  "aliases of aliases, a billion values": [
    "a0: &a0 [x, x, x, x, x, x, x, x, x]",
    ...Array.from({ length: 29 }, (_, index) => `a${index + 1}: &a${index + 1} [${`*a${index}, `.repeat(9)}]`),
  ].join("\n"),
  "merge keys of merge keys": [
    "a0: &a0 {b0: 1, c0: 1}",
    ...Array.from({ length: 29 }, (_, index) => `a${index + 1}: &a${index + 1} {<<: [*a${index}, *a${index}], b: 1}`),
  ].join("\n"),
  "a NUL": repeatToLength("\0"),
  tabs: repeatToLength("\ta: 1\n"),
  documents: repeatToLength("---\n"),
};

function expectFewLines(found: readonly ConfigProblem[]): void {
  expect(found.length).toBeGreaterThan(0);
  expect(found.length).toBeLessThanOrEqual(PROBLEMS_MAX + 1);
  expect(JSON.stringify(found).length).toBeLessThan(ANSWER_LENGTH_MAX);
  for (const { line, column, message } of found) {
    expect(line >= 1 && column >= 1 && message.length > 0).toBe(true);
  }
}

test.each(Object.entries(hostile))("%s are refused in a few lines", (_, text) => expectFewLines(configProblems(text)));

test.each(Object.entries(readers))("%s of wrong aliases is refused in a few lines", (_, read) => {
  expectFewLines(read(hostile["aliases of no anchor"]!));
});

describe("one long value is refused in a few lines:", () => {
  const long = repeatToLength("1");
  test.each([
    ["a URL of slashes", `service: { base_url: "http://x${repeatToLength("/")}x", api_key: k }`],
    ["slashes that might hide a password", `log: { level: "${repeatToLength("/")}" }`],
    ["a cron expression", `collect: { hourly: { cron: "${repeatToLength("* ")}" } }`],
    ["a duration", `service: { timeout: "${long}" }`],
    ["a percentage", `limits: { reserve: "${long}" }`],
    ["a time zone", `time_intervals: [{ name: a, years: ["2026"], location: "${repeatToLength("x")}" }]`],
    ["names of variables", `log: { level: "${repeatToLength("${X}")}" }`],
    ["an address", `web: { listen: "${long}" }`],
    ["an expression", `safety: { protected: '${repeatToLength("(")}wrong' }`],
    ["a range", `time_intervals: [{ name: a, days_of_month: ["${repeatToLength("1:")}"] }]`],
  ])("%s", (_, text) => expectFewLines(configProblems(text)));
});

test("2,000 wrong time zones are compared with the right ones only where they are listed", () => {
  const intervals = "{ years: [2026], location: Europe/Pariss },".repeat(20);
  const text = withService(
    `time_intervals:\n${numberedLines(100, (index) => `- { name: n${index}, time_intervals: [${intervals}] }\n`)}`,
  );
  const found = configProblems(text);
  expect(found.at(-1)).toMatchObject({ omitted: 2_000 - PROBLEMS_MAX });
  expect(found[0]?.suggestion).toBe("Europe/Paris");
});

test("a long list of problems is cut, and the rest is counted", () => {
  const text = withService(numberedLines(80, (index) => `k${index}: 1\n`));
  const found = configProblems(text);
  expect(found.slice(0, -1).map(({ line }) => line)).toEqual(Array.from({ length: PROBLEMS_MAX }, (_, i) => i + 2));
  expect(formatProblem(found.at(-1)!)).toBe(`p.yaml:${PROBLEMS_MAX + 2}:1: and ${80 - PROBLEMS_MAX} more problems`);
  expect(found.at(-1)).toMatchObject({ omitted: 80 - PROBLEMS_MAX });
});

test("problems of several files are counted together", () => {
  const policy = `policies: []\n${numberedLines(80, (index) => `k${index}: 1\n`)}`;
  const loaded = loadWith(withService("policies: ['*.yaml']\n"), { "a.yaml": policy, "b.yaml": policy });
  const found = errorsOf(loaded);
  expect(found).toHaveLength(PROBLEMS_MAX + 1);
  expect(found.at(-1)).toMatchObject({ file: "a.yaml", omitted: 2 * 80 - PROBLEMS_MAX });
});

test("one problem over the limit is one problem", () => {
  const found = configProblems(withService(numberedLines(PROBLEMS_MAX + 1, (index) => `k${index}: 1\n`)));
  expect(found.at(-1)?.message).toBe("and 1 more problem");
});

describe("a file that is too large is rejected with the limit:", () => {
  test.each([
    [
      "131,073 characters",
      "x".repeat(131_073),
      "1:1: the file is too large: it has 131073 characters, and may have at most 131072",
    ],
    [
      "50,001 values",
      `a: [${"1,".repeat(50_001)}]`,
      "1:100001: the file is too large: it may have at most 50000 values with all aliases expanded",
    ],
    [
      "100,000 open brackets",
      "[".repeat(100_000),
      /^1:\d+: the file is nested too deeply: at most 32 levels are allowed$/,
    ],
    [
      "40 levels",
      `${"[".repeat(40)}${"]".repeat(40)}`,
      "1:34: the file is nested too deeply: at most 32 levels are allowed",
    ],
  ])("%s", (_, text, expected) => {
    expect(configErrors(text)).toEqual([expect.stringMatching(expected)]);
  });

  test("the policy files of one configuration are measured together", () => {
    const policy = `# ${"x".repeat(75_000)}\npolicies: []\n`;
    const found = errorsOf(loadWith(withService("policies: ['*.yaml']\n"), { "a.yaml": policy, "b.yaml": policy }));
    expect(found.map(formatProblem)).toEqual([
      "b.yaml:1:1: the policy files are too large: together they have 150032 characters up to here, and may have at most 131072",
    ]);
  });
});

describe("a tag that changes a value is rejected with its position:", () => {
  test.each([
    "!!binary aGVsbG8=",
    "!!set {a: null}",
    "!!omap [a: 1]",
    "!!timestamp 2026-01-01",
    "!!pairs []",
    "!secret x",
  ])("%s", (value) => {
    const tag = value.split(" ")[0];
    expect(configErrors(withService(`log:\n  level: ${value}\n`))).toEqual([
      `3:10: found the tag ${tag}; must have no tag, or one of !!str, !!int, !!float, !!bool, !!null, !!map, !!seq; quote a text that begins with !`,
    ]);
  });

  test("one of plain YAML is accepted", () => {
    const text = "log: !!map\n  level: !!str debug\nexport: { top_customers: !!int 3, !!merge <<: { deny: [] } }\n";
    expect(configErrors(withService(text))).toEqual([]);
  });
});

test.each([
  ["log:\0 {}\n", "1:5: found the control character U+0000; must be text in UTF-8"],
  ["log:\n  level: 'a\x7fb'\n", "2:12: found the control character U+007F; must be text in UTF-8"],
])("%j is refused where it is no text", (text, expected) => {
  expect(configErrors(text)).toEqual([expected]);
});

test.each([
  "policies: { length: {} }",
  "receivers: { length: { toString: 1, valueOf: 1 } }",
  "web: { trusted_proxies: { length: [{}] } }",
  "service: { api_key: { length: {} } }",
  "safety: { trust: { size: { length: {} } } }",
])("%s, a mapping that could be taken for a list by its length, is refused in its line", (text) => {
  const found = configProblems(text);
  expectFewLines(found);
  expect(found.every(({ line }) => line === 1)).toBe(true);
});

test("a web configuration may have a thousand users", () => {
  const users = numberedLines(1_000, (index) => `  user-${index}: $2y$10$${"x".repeat(53)}\n`);
  expect(errorsOf(readWebText("web.yml", `basic_auth_users:\n${users}`))).toEqual([]);
});

describe("a list that is too long is refused with its length:", () => {
  const items = (count: number, item: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => item(index)).join(", ");

  test.each([
    [
      "globs of policy files",
      `policies: [${items(32, (index) => `p${index}.yaml`)}]`,
      "a list of 32; must be a list of globs of policy files, at most 20",
    ],
    [
      "trusted proxies",
      `web: { trusted_proxies: [${items(200, (index) => `10.0.0.${index}`)}] }`,
      "a list of 200; must be a list of IP addresses and networks, at most 100",
    ],
    [
      "receivers",
      `receivers: [${items(200, (index) => `{ name: r${index} }`)}]`,
      "a list of 200; must be a list of receivers, at most 100",
    ],
    [
      "time intervals",
      `time_intervals: [${items(200, (index) => `{ name: t${index} }`)}]`,
      "a list of 200; must be a list of time intervals, at most 100",
    ],
  ])("%s", (_, text, expected) => {
    expect(configErrors(withService(text)).join("\n")).toContain(`found ${expected}`);
  });
});
