import { dirname, isAbsolute, join } from "node:path";
import { fail, ok, type Result } from "../base/result.ts";
import { type Bearings, type ConfigSource, checkValue, type Names } from "./checks.ts";
import { type LoadedPolicy, policiesOf, readPolicyFiles } from "./policy-file.ts";
import { type ConfigProblem, joinProblems } from "./diagnostics/problem.ts";
import { type Rules, readAs } from "./schema-reader.ts";
import { type Config, configSchema } from "./schema/config.ts";
import { warningsOf } from "./diagnostics/warnings.ts";
import { readWebFile, type WebFile } from "./web-file.ts";

/** A valid configuration, and the warnings about it. */
export interface LoadedConfig {
  readonly config: Config;
  /** In the order in which they come to act: by the paths of their files, then as they stand there. */
  readonly policies: readonly LoadedPolicy[];
  /** Null: none is named. */
  readonly webFile: WebFile | null;
  readonly warnings: readonly ConfigProblem[];
}

/**
 * Reads a configuration, its policies and its web configuration, through `readFile` and `listFiles` alone. Fails with
 * every error of every file, in the order of its lines. Paths in a file are relative to the folder of the configuration;
 * in the web configuration, to its own.
 */
export function loadConfig(source: ConfigSource): Result<LoadedConfig, readonly ConfigProblem[]> {
  const folder = dirname(source.file);
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(folder, path));
  // Known as soon as the globs are checked: a mistake elsewhere in the configuration doesn't hide those of policies.
  const policyPaths = new Set<string>();
  const find = (glob: string) => {
    const paths = source.listFiles?.(glob, folder) ?? [];
    for (const path of paths) policyPaths.add(path);
    return paths;
  };
  const bearings: Bearings = { source, resolvePath, find, names: null };
  const webPaths = new Set<string>();
  const check: Rules["check"] = (kind, value) => {
    const refusal = checkValue(kind, value, bearings);
    if (kind === "web" && refusal === null && source.readFile !== undefined) webPaths.add(resolvePath(value));
    return refusal;
  };
  const main = readAs(configSchema, source, { check, resolvePath });
  const names = main.ok ? namesOf(main.value.value) : null;
  const files = readPolicyFiles([...policyPaths].toSorted(), { ...bearings, names });
  const [webPath] = webPaths;
  const web = webPath === undefined ? ok({ webFile: null, warnings: [] }) : readWebFile(webPath, bearings);
  if (!main.ok || !files.ok || !web.ok) {
    return fail(joinProblems([main, files, web].map((read) => (read.ok ? [] : read.error))));
  }
  return ok({
    config: main.value.value,
    policies: policiesOf(files.value),
    webFile: web.value.webFile,
    warnings: joinProblems([warningsOf(main.value, source.file, files.value, source.checks), web.value.warnings]),
  });
}

const namesOf = ({ receivers, time_intervals, prometheus, alertmanager }: Config): Names => ({
  receivers: receivers.map(({ name }) => name),
  windows: time_intervals.map(({ name }) => name),
  prometheus: prometheus !== undefined,
  alertmanager: alertmanager !== undefined,
});
