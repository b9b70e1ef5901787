import { globSync } from "node:fs";
import { join } from "node:path";
import { fail, type Result } from "../../base/result.ts";
import type { ConfigChecks } from "../../config/checks.ts";
import { type ConfigProblem, formatProblem } from "../../config/diagnostics/problem.ts";
import { type LoadedConfig, loadConfig } from "../../config/load.ts";
import type { LoadedPolicy } from "../../config/policy-file.ts";
import { loadPolicies } from "../../config/policy-set.ts";
import { type LoadedPolicyTests, loadPolicyTests } from "../../config/schema/policy-test.ts";
import { toWebFile, type WebFile } from "../../config/web-file.ts";
import { networkFamilyNames } from "../../metrics/families/network-families.ts";
import { cronError } from "../../platform/cron.ts";
import { NO_SUCH_FILE } from "../../platform/text-file.ts";
import { compileExpression } from "../../policy/cel/expression.ts";
import { readTextFile } from "../context.ts";
import { findSkippedRuns } from "./cron-check.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const CONFIG_CHECKS: ConfigChecks = {
  cron: cronError,
  families: networkFamilyNames(),
  expression(text) {
    const compiled = compileExpression(text);
    return compiled.ok ? null : compiled.error;
  },
  fields(text) {
    const compiled = compileExpression(text);
    return compiled.ok ? compiled.value.fields : [];
  },
  skippedRuns: findSkippedRuns,
};

/**
 * Lists the files that a glob finds, without folders. A link counts as a file: Kubernetes mounts files as links. Repeated
 * `**` find the same files as one, and take many times as long.
 */
const listFiles = (glob: string, folder: string): readonly string[] =>
  globSync(glob.replace(/(?<=^|\/)(?:\*\*\/)+/g, "**/"), { cwd: folder, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));

/** Reads and judges a configuration text that stands in `file`, and the policies that it names. */
export const parseConfig = (
  file: string,
  text: string,
  env: Environment,
): Result<LoadedConfig, readonly ConfigProblem[]> =>
  loadConfig({ file, text, env, readFile: readTextFile, listFiles, checks: CONFIG_CHECKS });

/** Reads and judges a text of policy tests that stands in `file`, and the policies that it names. */
export const parsePolicyTests = (
  file: string,
  text: string,
  env: Environment,
): Result<LoadedPolicyTests, readonly ConfigProblem[]> =>
  loadPolicyTests({ file, text, env, readFile: readTextFile, listFiles, checks: CONFIG_CHECKS });

/** Reads and judges the policies of a policy file or a configuration, whose text stands in `file`. */
export const parsePolicies = (
  file: string,
  text: string,
  env: Environment,
): Result<readonly LoadedPolicy[], readonly ConfigProblem[]> =>
  loadPolicies({ file, text, env, readFile: readTextFile, listFiles, checks: CONFIG_CHECKS });

/** A web configuration that was read in another thread, ready to be read again in this one. */
export function restoreWebFile(read: Pick<WebFile, "file" | "config">, env: Environment): WebFile {
  const source = { file: read.file, text: "", env, checks: CONFIG_CHECKS };
  return toWebFile(read, { source, find: () => [], resolvePath: (path) => path, names: null });
}

/** Reads the text of a configuration; the error says which file, and why not. */
export function readConfigText(file: string): Result<string, string> {
  const text = readTextFile(file);
  if (text.ok || !text.error.endsWith(NO_SUCH_FILE)) return text;
  return fail(`${text.error}; set the configuration file with --config`);
}

/** Reads and judges a configuration file; the error is every problem, a line each. */
export function readConfigFile(file: string, env: Environment): Result<LoadedConfig, readonly string[]> {
  const text = readConfigText(file);
  if (!text.ok) return fail([text.error]);
  const parsed = parseConfig(file, text.value, env);
  return parsed.ok ? parsed : fail(parsed.error.map(formatProblem));
}
