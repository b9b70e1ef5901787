import { readFileSync } from "node:fs";
import { fail, ok } from "../../src/base/result.ts";
import type { ConfigChecks, ConfigSource } from "../../src/config/checks.ts";
import { type ConfigProblem, formatProblem } from "../../src/config/diagnostics/problem.ts";
import { type LoadedConfig, loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/schema/config.ts";
import { loadScenario, type Scenario } from "../../src/config/schema/scenario.ts";
import { readWebFile } from "../../src/config/web-file.ts";
import { HOLD_REASONS } from "../../src/policy/decision.ts";
import { orThrow } from "../harness/or-throw.ts";

/** Environment of the tests. */
export type TestEnvironment = Record<string, string>;

/**
 * Lenient checks: a cron expression needs the right number of fields, and any expression is valid unless it contains the
 * word `wrong`; `doubtful` causes a warning.
 */
export const checks: ConfigChecks = {
  cron: (expression) => (/^(\S+ ){4,5}\S+$/.test(expression) ? null : "it has another number of fields"),
  families: ["proxynet_nodes", "proxynet_node_info"],
  holdReasons: HOLD_REASONS,
  expression(text) {
    const offset = text.search(/\bwrong\b/);
    if (offset >= 0) return fail([{ message: "something is wrong", offset }]);
    const fields = [...text.matchAll(/\b(?:node|sessions)\.\w+/g)].map(([name]) => fieldOf(name));
    return ok({ fields, warnings: () => (text.includes("doubtful") ? ["is doubtful"] : []) });
  },
};

const fieldOf = (name: string) => ({
  name,
  isUsage: name.endsWith("_usage"),
});

/**
 * Returns a config source with this text and lenient checks. A glob finds a file without policies, a web configuration
 * is empty, and each secret has a value.
 */
export const sourceOf = (text: string, env: TestEnvironment = {}): ConfigSource => ({
  file: "p.yaml",
  text,
  env,
  checks,
  readFile: (path) => ok(path === NO_POLICIES ? "policies: []" : path.endsWith(".yml") ? "" : "sesame"),
  listFiles: () => [NO_POLICIES],
  globProblem: () => null,
  now: 0,
});

const NO_POLICIES = "none.yaml";

/** The least that a configuration needs, and then `text`. */
export const withService = (text: string): string =>
  `service: { base_url: "https://proxy.example.net", api_key_file: key, usage_scale: ratio }\n${text}`;

/** Loads a text that must be fine. */
export function loadConfigText(text: string, env: TestEnvironment = {}): Config {
  const loaded = orThrow(loadConfig(sourceOf(text, env)));
  return loaded.config;
}

/** The errors of a text, as operators see them, without the name of the file. */
export const configErrors = (text: string, env: TestEnvironment = {}): string[] =>
  formatProblems(configProblems(text, env));

/** The errors of a text. */
export function configProblems(text: string, env: TestEnvironment = {}): readonly ConfigProblem[] {
  const loaded = loadConfig(sourceOf(text, env));
  return loaded.ok ? [] : loaded.error;
}

/** The warnings of a text that is fine. */
export function configWarnings(text: string, env: TestEnvironment = {}): string[] {
  const loaded = loadConfig(sourceOf(text, env));
  return loaded.ok ? formatProblems(loaded.value.warnings) : ["not loaded"];
}

/**
 * What a configuration with these policy files around it is; the glob `*.yaml` finds them all. Secrets hold something.
 */
export function loadWith(text: string, files: Readonly<Record<string, string>>, env: TestEnvironment = {}): LoadResult {
  return loadConfig({
    ...sourceOf(text, env),
    readFile(path) {
      if (!path.endsWith(".yaml")) return ok("sesame");
      return files[path] === undefined ? fail(`there is no ${path}`) : ok(files[path]);
    },
    listFiles: (glob) => Object.keys(files).filter((path) => glob === "*.yaml" || glob === path),
  });
}

type LoadResult = ReturnType<typeof loadConfig>;

/** Loads a configuration with one policy file, which must be valid. */
export function loadPolicyText(text: string, sections = ""): LoadedConfig {
  return orThrow(loadWith(withService(`policies: [a.yaml]\n${sections}`), { "a.yaml": text }));
}

/** The errors of a policy file, as operators see them, without its name. */
export function policyErrors(text: string, sections = "", env: TestEnvironment = {}): string[] {
  const loaded = loadWith(withService(`policies: [a.yaml]\n${sections}`), { "a.yaml": text }, env);
  return loaded.ok ? [] : loaded.error.map((problem) => formatProblem(problem).replace(/^a\.yaml:/, ""));
}

/** Reads a text as a web configuration file; the files that it names hold something. */
export function readWebText(file: string, text: string, env: TestEnvironment = {}): ReturnType<typeof readWebFile> {
  return readWebFile(file, env, (path) => ok(path === file ? text : "sesame"));
}

/** The errors of a web configuration, as operators see them, without its name. */
export function webErrors(text: string, env: TestEnvironment = {}): string[] {
  const read = readWebText("web.yml", text, env);
  return read.ok ? [] : read.error.map((problem) => formatProblem(problem).replace(/^web\.yml:/, ""));
}

const formatProblems = (list: readonly ConfigProblem[]): string[] =>
  list.map((problem) => formatProblem(problem).replace(/^p\.yaml:/, ""));

/** Loads a scenario text that must be fine. */
export function loadScenarioText(text: string): Scenario {
  return orThrow(loadScenario({ file: "p.yaml", text, env: {} }));
}

/** The errors of a scenario text. */
export function scenarioErrors(text: string): string[] {
  const loaded = loadScenario({ file: "p.yaml", text, env: {} });
  return loaded.ok ? [] : formatProblems(loaded.error);
}

/** Text of a file of the repository. */
export const fileText = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
