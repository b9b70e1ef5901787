import { existsSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { EXIT_OK } from "../../../src/cli/context.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { ALERT_NAMES } from "../../../src/notify/alertmanager.ts";
import { captureOutput } from "../../cli/terminal.ts";
import { requireProgram, runProgram } from "../../integration/process.ts";
import { catalogOfRules, findExpressionProblems } from "../metric-catalogue.ts";
import { inRepository, textOf } from "../repository-files.ts";
import { filesIn, ruleFiles, ruleGroups } from "../rule-files.ts";

interface RuleTest {
  readonly alert_rule_test?: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
  readonly promql_expr_test?: readonly { readonly expr: string }[];
}

interface RuleTests {
  readonly group_eval_order: readonly string[];
  readonly tests: readonly RuleTest[];
}

const testFiles = filesIn("config/prometheus/tests");
const rules = ruleGroups.flatMap((group) => group.rules);
const recorded = rules.flatMap(({ record }) => record ?? []);
const alerts = rules.filter(({ alert }) => alert !== undefined);
const names = alerts.map(({ alert }) => alert!);
const tests = testFiles.flatMap((file) => (parse(textOf(file)) as RuleTests).tests);

const ALERTMANAGER = inRepository("config/prometheus/alertmanager.yml");

const promtool = (...args: readonly string[]) =>
  runProgram(requireProgram("/usr/bin/promtool", "prometheus"), args, "");

test("promtool finds no errors in the rules, and no rule is duplicated", async () => {
  const output = await promtool("check", "rules", "--lint=all", "--lint-fatal", ...ruleFiles.map(inRepository));
  expect(output.match(/SUCCESS: \d+ rules found/g)).toHaveLength(ruleFiles.length);
  expect(new Set([...names, ...recorded]).size).toBe(rules.length);
});

test("promtool accepts the configuration of Prometheus, amtool that of Alertmanager, and there are no other files", async () => {
  const known = ["alertmanager.yml", "prometheus.yml", "rules", "tests"];
  expect(readdirSync(inRepository("config/prometheus")).toSorted()).toEqual(known);
  expect(await promtool("check", "config", inRepository("config/prometheus/prometheus.yml"))).toContain(
    `SUCCESS: ${ruleFiles.length} rule files found`,
  );
  const amtool = requireProgram("/usr/bin/amtool", "prometheus-alertmanager");
  expect(await runProgram(amtool, ["check-config", ALERTMANAGER], "")).toContain("SUCCESS");
});

test.each([
  ["severity=critical", "oncall"],
  ["severity=warning", "team"],
  ["severity=info", "display-only"],
  ["alertname=Stranger", "team"],
])("an alert with %s goes to %s", async (label, receiver) => {
  const amtool = requireProgram("/usr/bin/amtool", "prometheus-alertmanager");
  const args = ["config", "routes", "test", `--config.file=${ALERTMANAGER}`, label];
  expect(await runProgram(amtool, args, "")).toMatch(new RegExp(`^${receiver}\n`));
});

test("every unit test evaluates all groups, and recording rules before the rules that read them", () => {
  for (const { group_eval_order: order } of testFiles.map((file) => parse(textOf(file)) as RuleTests)) {
    expect(order.toSorted()).toEqual(ruleGroups.map(({ name }) => name).toSorted());
    const recording = order.filter((name) => name.endsWith("-recording"));
    expect(recording).toEqual(order.slice(0, recording.length));
  }
});

test("promtool's unit tests of the rules pass", async () => {
  const output = await Promise.all(testFiles.map((file) => promtool("test", "rules", inRepository(file))));
  for (const each of output) expect(each).toMatch(/^Unit Testing: .*\n {2}SUCCESS\n\n$/);
});

test("each alert has a test in which it fires and one in which it does not, and each recorded name has a tested value", () => {
  const cases = tests.flatMap(({ alert_rule_test: entry = [] }) => entry);
  const withAlerts = (some: boolean) =>
    new Set(cases.filter((entry) => entry.exp_alerts.length > 0 === some).map(({ alertname }) => alertname));
  expect(names.filter((name) => !withAlerts(true).has(name))).toEqual([]);
  expect(names.filter((name) => !withAlerts(false).has(name))).toEqual([]);
  const asked = tests.flatMap(({ promql_expr_test: entry = [] }) => entry.map(({ expr }) => expr)).join("\n");
  expect(recorded.filter((name) => !asked.includes(name))).toEqual([]);
});

test("expressions name only existing families, labels and label values", async () => {
  const known = await catalogOfRules();
  const problems = rules.flatMap(({ record, alert, expr }) =>
    findExpressionProblems(expr, known).map((problem) => `${record ?? alert}: ${problem}`),
  );
  expect(problems).toEqual([]);
});

test("each alert has a duration, a severity, a description and a link to the runbook", () => {
  for (const { alert, for: lasts, labels, annotations } of alerts) {
    expect(lasts, alert).toMatch(/^[1-9]\d*[mh]$/);
    expect(labels, alert).toEqual({ severity: expect.stringMatching(/^(?:critical|warning|info)$/) });
    expect(annotations, alert).toEqual({
      summary: expect.stringMatching(/\.$/),
      description: expect.stringMatching(/\.$/),
      runbook_url: `https://proxywarden.example.net/docs/runbook.md#${alert!.toLowerCase()}`,
    });
  }
});

describe("the runbook", () => {
  const text = textOf("docs/runbook.md");
  const sections = text.split(/^### /m).slice(1);
  const headings = sections.map((section) => section.split("\n")[0]);

  test("has a section for each alert and no other", () => {
    expect(headings.toSorted()).toEqual(names.toSorted());
  });

  test("describes the meaning, the impact, the checks and the remedy of each alert", () => {
    for (const section of sections) {
      for (const part of ["Means", "Impact", "Check", "Do"]) expect(section).toContain(`\n**${part}:** `);
    }
  });

  test("has a row for each alert that the daemon sends by itself", () => {
    const rows = text.match(/(?<=^\| `)\w+(?=` \|)/gm);
    expect(rows?.toSorted()).toEqual(Object.values(ALERT_NAMES).toSorted());
  });

  test("names only existing commands", async () => {
    const output = await captureOutput((context) => {
      const known = createProgram(context).commands.map((command) => command.name());
      const named = [...text.matchAll(/(?:`|^)proxywarden ([a-z-]+)/gm)].map(([, name]) => name!);
      expect(named.length).toBeGreaterThan(5);
      expect(named.filter((name) => !known.includes(name))).toEqual([]);
      return Promise.resolve(EXIT_OK);
    });
    expect(output).toMatchObject({ code: EXIT_OK });
  });

  test("has no broken links", () => {
    const anchors = text.match(/^#+ (.*)$/gm)!.map((line) => line.replace(/^#+ /, "").toLowerCase());
    for (const [, anchor] of text.matchAll(/\]\(#([^)]*)\)/g)) expect(anchors).toContain(anchor);
    for (const [, path] of text.matchAll(/\]\((?!#)([^)#]*)\)/g)) {
      expect(existsSync(inRepository(`docs/${path}`)), path).toBe(true);
    }
  });
});
