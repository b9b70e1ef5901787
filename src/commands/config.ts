import { fail, type Result } from "../base/result.ts";
import { type LoadedConfig, loadConfig } from "../config/load.ts";
import { type ConfigProblem, formatProblem } from "../config/problem.ts";
import { familyNames } from "../metrics/families.ts";
import { cronProblem } from "../system/bell.ts";
import { readTextFile } from "./context.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads and judges a configuration text that stands in `file`. */
export const judgeConfig = (
  file: string,
  text: string,
  env: Environment,
): Result<LoadedConfig, readonly ConfigProblem[]> =>
  loadConfig({ file, text, env, readFile: readTextFile, checks: { cron: cronProblem, families: familyNames() } });

/** Reads and judges a configuration file; the error is every problem, a line each. */
export function readConfigFile(file: string, env: Environment): Result<LoadedConfig, readonly string[]> {
  const text = readTextFile(file);
  if (!text.ok) return fail([text.error]);
  const judged = judgeConfig(file, text.value, env);
  return judged.ok ? judged : fail(judged.error.map(formatProblem));
}
