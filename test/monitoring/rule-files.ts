import { readdirSync } from "node:fs";
import { parse } from "yaml";
import { requireProgram, startProcess } from "../integration/process.ts";
import { parsePromql } from "./promql.ts";
import { inRepository, textOf } from "./repository-files.ts";

/** Paths of the files in a folder of the repository. */
export const filesIn = (folder: string) => readdirSync(inRepository(folder)).map((name) => `${folder}/${name}`);

/** A rule of Prometheus. */
export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A group of a file of rules. */
export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly Rule[];
}

/** The shipped files of rules, and their groups. */
export const ruleFiles = filesIn("config/prometheus/rules");
export const ruleGroups = ruleFiles.flatMap((file) => (parse(textOf(file)) as { groups: RuleGroup[] }).groups);

/** Names of the series that expressions read, also those that the recording rules read for them. */
export function seriesReadBy(expressions: readonly string[]): ReadonlySet<string> {
  const series = new Set<string>();
  const add = (expression: string) => {
    for (const { name } of parsePromql(expression).selectors) {
      if (series.has(name)) continue;
      series.add(name);
      for (const { rules } of ruleGroups) for (const { record, expr } of rules) if (record === name) add(expr);
    }
  };
  for (const expression of expressions) add(expression);
  return series;
}

/** The head of a file of promtool's unit tests of the shipped rules. What is recorded comes before what reads it. */
export const RULE_TEST_HEAD = {
  rule_files: ruleFiles.map(inRepository),
  group_eval_order: ruleGroups
    .map(({ name }) => name)
    .toSorted((one, other) => Number(other.endsWith("-recording")) - Number(one.endsWith("-recording"))),
};

/** Runs a file of promtool's unit tests. Returns what failed; empty: nothing. */
export async function promtoolTest(file: string): Promise<string> {
  const promtool = requireProgram("/usr/bin/promtool", "prometheus");
  const { code, out, err } = await startProcess(promtool, ["test", "rules", file]).ended;
  return code === 0 ? "" : out + err;
}
