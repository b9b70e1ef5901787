import { fail, ok, type Result } from "../base/result.ts";
import { type ConfigSource, createChecks, type DefinedNames } from "./checks.ts";
import {
  type ConfigProblem,
  type Finding,
  type KeyPositions,
  keyPositionsOf,
  mergeProblems,
  toProblems,
} from "./diagnostics/problem.ts";
import { findWarnings } from "./diagnostics/warnings.ts";
import { policiesInOrder, readPolicyFiles } from "./policy-file.ts";
import { type Config, configSchema, stateFileSchema } from "./schema/config.ts";
import { kindOf, schemaAt } from "./schema/introspection.ts";
import type { PolicySpec } from "./schema/policy.ts";
import { readWebFile, type WebFile } from "./web-file.ts";
import { checkYaml, readYaml, type ValueCheck } from "./yaml-reader.ts";

/** A valid configuration, and the warnings about it. */
export interface LoadedConfig {
  readonly config: Config;
  /** Policies, ordered by the paths of their files, then by position. If several fire on a node, the first one acts. */
  readonly policies: readonly PolicySpec[];
  /** Null if no web configuration file is named. */
  readonly webFile: WebFile | null;
  readonly warnings: readonly ConfigProblem[];
  /** The keys of the configuration, without those of its policies and its web configuration. */
  readonly keys: KeyPositions;
  /** For each policy, the keys of its file and its path in that file, such as `policies[2]`. */
  readonly policyKeys: readonly { readonly keys: KeyPositions; readonly path: string }[];
}

/** Sections with the secrets of connections. */
const CONNECTIONS = ["service", "web", "state", "receivers", "prometheus", "alertmanager"] as const;
/** A section with the secrets of connections. */
export type Connection = (typeof CONNECTIONS)[number];

/**
 * Loads a configuration, its policies and its web configuration. Fails with every error of every file, ordered by line.
 * Paths are relative to the folder of the configuration; those in the web configuration to its own folder. `used` lists
 * the connections that will be opened. For the others, variables of secrets may be unset, and files may be missing.
 */
export function loadConfig(
  source: ConfigSource,
  used: readonly Connection[] = CONNECTIONS,
): Result<LoadedConfig, readonly ConfigProblem[]> {
  const [policyPaths, webPaths] = [new Set<string>(), new Set<string>()];
  const checks = createChecks(source, null, policyPaths);
  const check: ValueCheck = (kind, value) => {
    const problems = checks(kind, value);
    if (kind === "web" && problems.length === 0) webPaths.add(value);
    return problems;
  };
  const main = readYaml(configSchema, source, check, isNeededFor(used));
  const names = main.ok ? definedNames(main.value.value) : null;
  // Policies are checked even if the configuration has errors.
  const files = readPolicyFiles([...policyPaths].toSorted(), source, names);
  const [webPath] = used.includes("web") ? webPaths : [];
  const web = webPath === undefined ? ok(null) : readWebFile(webPath, source.env, source.readFile);
  if (!main.ok || !files.ok || !web.ok) {
    return fail(mergeProblems([main, files, web].map((read) => (read.ok ? [] : read.error))));
  }
  return ok({
    config: main.value.value,
    policies: policiesInOrder(files.value),
    webFile: web.value,
    warnings: mergeProblems([findWarnings(main.value, source, files.value), web.value?.warnings ?? []]),
    keys: keyPositionsOf(main.value),
    policyKeys: files.value.flatMap((file) => {
      const keys = keyPositionsOf(file);
      return file.value.policies.map((_, index) => ({ keys, path: `policies[${index}]` }));
    }),
  });
}

/** Returns a predicate that is false for problems with the secrets and files of connections that are not used. */
function isNeededFor(used: readonly Connection[]): (finding: Finding) => boolean {
  const unused = new Set<unknown>(CONNECTIONS.filter((section) => !used.includes(section)));
  return ({ path }) => {
    const here = unused.has(path[0]) ? schemaAt(configSchema, path, undefined) : null;
    const kind = here && kindOf(here);
    return kind?.secret === undefined && kind?.check !== "file" && kind?.check !== "web";
  };
}

/** Loads the section `state` of a configuration. Errors in other sections don't matter. */
export function loadStateSection(source: ConfigSource): Result<Config["state"], readonly ConfigProblem[]> {
  const { parsed, findings } = checkYaml(stateFileSchema, source, createChecks(source, null));
  const others = new Set<unknown>(Object.keys(stateFileSchema.shape).filter((key) => key !== "state"));
  const own = findings.filter(({ path }) => !others.has(path[0]));
  return parsed !== null && own.length === 0 ? ok(parsed.state) : fail(toProblems(source.file, own));
}

/** Returns the names of a configuration that its policies may refer to. */
export const definedNames = ({ receivers, time_intervals, prometheus, alertmanager }: Config): DefinedNames => ({
  receivers: receivers.map(({ name }) => name),
  windows: time_intervals.map(({ name }) => name),
  prometheus: prometheus !== undefined,
  alertmanager: alertmanager !== undefined,
});
