import { globSync, opendirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fail, ok, type Result } from "../../base/result.ts";
import type { ConfigChecks, ConfigSource, DefinedNames } from "../../config/checks.ts";
import { type ConfigProblem, locateProblem } from "../../config/diagnostics/problem.ts";
import { type Connection, type LoadedConfig, loadConfig } from "../../config/load.ts";
import { policiesInOrder, readPolicyFiles } from "../../config/policy-file.ts";
import { loadPolicyTests } from "../../config/policy-test-file.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import { parseYaml } from "../../config/yaml-reader.ts";
import { networkFamilyNames } from "../../metrics/families/network-families.ts";
import { systemClock } from "../../platform/clock.ts";
import { cronError } from "../../platform/cron.ts";
import { NO_SUCH_FILE, readTextFile, readTextInput } from "../../platform/text-file.ts";
import { compileExpression } from "../../policy/cel/expression.ts";
import { HOLD_REASONS } from "../../policy/decision.ts";
import { problemText } from "../context.ts";

/** The checks of a configuration that need other parts of the program. */
export const CONFIG_CHECKS: ConfigChecks = {
  cron: cronError,
  families: networkFamilyNames(),
  holdReasons: HOLD_REASONS,
  expression: compileExpression,
};

/**
 * Lists the files that match a glob. A link counts as a file, because Kubernetes mounts files as links. Repeated `**`
 * are merged, because they match the same files as one but take many times as long.
 */
const listFiles = (glob: string, folder: string): readonly string[] =>
  globSync(glob.replace(/(?<=^|\/)(?:\*\*\/)+/g, "**/"), { cwd: folder, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));

/** Returns why the folder before the first wildcard of a glob can't be listed, or null if it can. */
function globProblem(glob: string, folder: string): string | null {
  const parent = dirname(glob.replace(/[*?[{(!+@].*$/s, "x"));
  try {
    opendirSync(resolve(folder, parent)).closeSync();
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? `there is no folder ${parent}` : `can't list the folder ${parent}: ${code}`;
  }
}

const sourceOf = (file: string, text: string, env: NodeJS.ProcessEnv): ConfigSource => ({
  file,
  text,
  env,
  listFiles,
  globProblem,
  readFile: readTextFile,
  checks: CONFIG_CHECKS,
  now: systemClock.now(),
});

/** Loads a configuration from the text of `file`, with the policies that it names, as `loadConfig` does. */
export const parseConfig = (file: string, text: string, env: NodeJS.ProcessEnv, used?: readonly Connection[]) =>
  loadConfig(sourceOf(file, text, env), used);

/** Loads policy tests from the text of `file`, with the policies that they name. */
export const parsePolicyTests = (file: string, text: string, env: NodeJS.ProcessEnv) =>
  loadPolicyTests(sourceOf(file, text, env));

/** A problem with a file. Without a position, the message names the file. */
export type FileProblem = ConfigProblem | Pick<ConfigProblem, "file" | "message">;

/**
 * Reads the policies of a policy file, or of a configuration, which has the section `service`. Policies may refer only
 * to `names`, or to any name if that is null.
 */
export async function readPolicies(
  file: string,
  env: NodeJS.ProcessEnv,
  names: DefinedNames | null = null,
): Promise<Result<readonly PolicySpec[], readonly FileProblem[]>> {
  const text = await readTextInput(file);
  if (!text.ok) return fail([{ file, message: text.error }]);
  const source = sourceOf(file, text.value, env);
  const { value } = parseYaml(source);
  if (typeof value === "object" && value !== null && "service" in value) {
    const loaded = loadConfig(source, []);
    return loaded.ok ? ok(loaded.value.policies) : loaded;
  }
  // The text was read already: standard input can't be read twice.
  const read = readPolicyFiles([file], { ...source, readFile: () => text }, names);
  return read.ok ? ok(policiesInOrder(read.value)) : read;
}

/** Domains that are reserved for examples (RFC 2606). */
const PLACEHOLDER_HOST = /(?:^|\.)example(?:\.(?:com|net|org))?$/;

/** Returns why a valid configuration is an example that was not filled in, or null if it was. */
export function placeholderProblem({ config, keys }: LoadedConfig): ConfigProblem | null {
  const { base_url: url } = config.service;
  if (!PLACEHOLDER_HOST.test(new URL(url).hostname)) return null;
  const message = `found "${url}", which is the placeholder of the example; must be the URL of your service`;
  return locateProblem(keys, { key: "service.base_url", message });
}

/** Reads a configuration file without loading it. */
export function readSource(file: string, env: NodeJS.ProcessEnv): Result<ConfigSource, FileProblem> {
  const text = readTextFile(file);
  if (text.ok) return ok(sourceOf(file, text.value, env));
  const hint = text.error.endsWith(NO_SUCH_FILE) ? "; set the configuration file with --config" : "";
  return fail({ file, message: `${text.error}${hint}` });
}

/** Loads a configuration file, as `loadConfig` does. The error lists every problem. */
export function readConfig(
  file: string,
  env: NodeJS.ProcessEnv,
  used?: readonly Connection[],
): Result<LoadedConfig, readonly FileProblem[]> {
  const source = readSource(file, env);
  return source.ok ? loadConfig(source.value, used) : fail([source.error]);
}

/**
 * Loads a configuration to run, like {@link readConfig}, but also rejects the placeholder of the example. Each problem is a
 * line of text.
 */
export function readConfigFile(file: string, env: NodeJS.ProcessEnv): Result<LoadedConfig, readonly string[]> {
  const read = readConfig(file, env);
  if (!read.ok) return fail(read.error.map(problemText));
  const placeholder = placeholderProblem(read.value);
  return placeholder === null ? read : fail([problemText(placeholder)]);
}
