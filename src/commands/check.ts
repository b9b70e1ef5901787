import { prepareAccess } from "../assembly.ts";
import { fail, type Result } from "../base/result.ts";
import type { LoadedConfig } from "../config/load.ts";
import { type ConfigProblem, formatProblem } from "../config/problem.ts";
import { folderProblem } from "../store/folder.ts";
import { createSystemClock } from "../system/clock.ts";
import { judgeConfig } from "./config.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode, readTextFile } from "./context.ts";

interface CheckOptions {
  readonly config: string;
  readonly output: "text" | "json";
}

/** `check --config FILE`: everything that `run` would refuse, and warnings. */
export async function check({ config: file, output }: CheckOptions, context: CommandContext): Promise<ExitCode> {
  const checked = await checkFile(file, context);
  const errors = checked.ok ? [] : checked.error;
  const warnings = checked.ok ? checked.value.warnings : [];
  if (output === "json") {
    context.out.write(`${JSON.stringify({ file, valid: checked.ok, errors, warnings }, null, 2)}\n`);
  } else {
    for (const error of errors) context.err.write(`${typeof error === "string" ? error : formatProblem(error)}\n`);
    for (const warning of warnings) context.err.write(`warning: ${formatProblem(warning)}\n`);
    context.out.write(
      `${file}: ${checked.ok ? "valid" : `${errors.length} ${errors.length === 1 ? "error" : "errors"}`}\n`,
    );
  }
  return checked.ok ? EXIT_FINE : EXIT_BAD;
}

type Problem = ConfigProblem | string;

async function checkFile(file: string, { env }: CommandContext): Promise<Result<LoadedConfig, readonly Problem[]>> {
  const text = readTextFile(file);
  if (!text.ok) return fail([text.error]);
  const judged = judgeConfig(file, text.value, env);
  if (!judged.ok) return judged;
  const access = prepareAccess(judged.value.config, createSystemClock(), readTextFile);
  if (access.ok) await access.value.transport.close();
  const unusable = folderProblem(judged.value.config.state.path);
  const problems = [...(access.ok ? [] : access.error), ...(unusable === null ? [] : [`state.path: ${unusable}`])];
  return problems.length === 0 ? judged : fail(problems.map((problem) => `${file}: ${problem}`));
}
