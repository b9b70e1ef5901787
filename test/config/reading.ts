import { readFileSync } from "node:fs";
import { type ConfigSource, loadConfig } from "../../src/config/load.ts";
import { type ConfigProblem, formatProblem } from "../../src/config/problem.ts";
import { loadScenario } from "../../src/config/scenario.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Scenario } from "../../src/model/scenario.ts";
import { defaultScenario } from "../../src/simulator/defaults.ts";

/** Environment of the tests. */
export type Variables = Record<string, string>;

/** A config source of that text with a lenient world around it: cron is judged by its number of fields. */
export function sourceOf(text: string, env: Variables = {}): ConfigSource {
  const cron = (expression: string) => (/^(\S+ ){4,5}\S+$/.test(expression) ? null : "it has another number of fields");
  return { file: "p.yaml", text, env, checks: { cron, families: ["proxynet_nodes", "proxynet_node_info"] } };
}

/** The least that a configuration needs, and then `text`. */
export const withService = (text: string): string =>
  `service: { base_url: "https://proxy.example.net", api_key_file: key, usage_scale: ratio }\n${text}`;

/** Loads a text that must be fine. */
export function config(text: string, env: Variables = {}): Config {
  const loaded = loadConfig(sourceOf(text, env));
  if (!loaded.ok) throw new Error(loaded.error.map(formatProblem).join("\n"));
  return loaded.value.config;
}

/** The errors of a text, as people see them, without the name of the file. */
export const errors = (text: string, env: Variables = {}): string[] => shown(problems(text, env));

/** The errors of a text. */
export function problems(text: string, env: Variables = {}): readonly ConfigProblem[] {
  const loaded = loadConfig(sourceOf(text, env));
  return loaded.ok ? [] : loaded.error;
}

/** The warnings of a text that is fine. */
export function warnings(text: string, env: Variables = {}): string[] {
  const loaded = loadConfig(sourceOf(text, env));
  return loaded.ok ? shown(loaded.value.warnings) : ["not loaded"];
}

const shown = (list: readonly ConfigProblem[]): string[] =>
  list.map((problem) => formatProblem(problem).replace(/^p\.yaml:/, ""));

/** Loads a scenario text that must be fine. */
export function scenario(text: string): Scenario {
  const loaded = loadScenario({ file: "p.yaml", text, env: {} }, defaultScenario);
  if (!loaded.ok) throw new Error(loaded.error.map(formatProblem).join("\n"));
  return loaded.value;
}

/** The errors of a scenario text. */
export function scenarioErrors(text: string): string[] {
  const loaded = loadScenario({ file: "p.yaml", text, env: {} }, defaultScenario);
  return loaded.ok ? [] : shown(loaded.error);
}

/** Text of a file of the repository. */
export const fileText = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
