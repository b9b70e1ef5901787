import { dirname, isAbsolute, join } from "node:path";
import { fail, ok, type Result } from "../base/result.ts";
import { type Bearings, type ConfigSource, checkValue, type Names } from "./check.ts";
import { type LoadedPolicy, policiesOf, readPolicyFiles } from "./policyfile.ts";
import type { ConfigProblem } from "./problem.ts";
import { type Rules, readAs } from "./read.ts";
import { type Config, configSchema } from "./schema.ts";
import { warningsOf } from "./warning.ts";

/** A configuration that may be put in force, and what its owner should know. */
export interface LoadedConfig {
  readonly config: Config;
  /** In the order in which they come to act: by the paths of their files, then as they stand there. */
  readonly policies: readonly LoadedPolicy[];
  readonly warnings: readonly ConfigProblem[];
}

const RESERVED: Rules["reserved"] = new Map([
  ["web.web_config_file", "web_config_file is not supported by this version; leave it out"],
]);

/**
 * Reads a configuration and its policies, through `readFile` and `listFiles` alone. Fails with every error of every
 * file, in the order of its lines. Paths in a file are relative to the folder of the configuration.
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
  const check: Rules["check"] = (kind, value) => checkValue(kind, value, bearings);
  const main = readAs(configSchema, source, { reserved: RESERVED, check, resolvePath });
  const names = main.ok ? namesOf(main.value.value) : null;
  const files = readPolicyFiles([...policyPaths].toSorted(), { ...bearings, names });
  if (!main.ok || !files.ok) return fail([...(main.ok ? [] : main.error), ...(files.ok ? [] : files.error)]);
  return ok({
    config: main.value.value,
    policies: policiesOf(files.value),
    warnings: warningsOf(main.value, source.file, files.value, source.checks),
  });
}

const namesOf = ({ receivers, time_intervals, prometheus, alertmanager }: Config): Names => ({
  receivers: receivers.map(({ name }) => name),
  windows: time_intervals.map(({ name }) => name),
  prometheus: prometheus !== undefined,
  alertmanager: alertmanager !== undefined,
});
