import { once } from "node:events";
import { readFileSync } from "node:fs";
import { errorMessage, fail, type Result } from "../base/result.ts";
import { type ConfigProblem, formatProblem } from "../config/diagnostics/problem.ts";
import { createPaint, type Output, type Paint } from "./output/text.ts";

/** What a command reads and writes: the process, or a replacement in tests. */
export interface CommandContext {
  readonly env: NodeJS.ProcessEnv;
  readonly out: Output;
  readonly err: Output;
  /** Aborts when the process is asked to stop (SIGTERM, SIGINT). */
  readonly stop: AbortSignal;
  /** Calls `then` on every SIGHUP. */
  onSighup(then: () => void): void;
  readonly version: string;
}

/** The package's version. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }
).version;

/**
 * The command that runs this program: an npm script in a checkout, whose files are TypeScript, or else the installed
 * command.
 */
export const PROGRAM = import.meta.url.endsWith(".ts") ? "npm start --" : "proxywarden";

/** Exit code of a success. */
export const EXIT_OK = 0;
/** Exit code if a check or an operation failed. */
export const EXIT_FAILURE = 1;
/** Exit code of a usage error. */
export const EXIT_USAGE = 2;
/** An exit code of the program. */
export type ExitCode = typeof EXIT_OK | typeof EXIT_FAILURE | typeof EXIT_USAGE;

/** What is wrong: a sentence, or a message that may have a position in a file. */
export type Problem = string | ConfigProblem | { readonly message: string };

/** Formats a problem as one line. */
export function problemText(problem: Problem): string {
  if (typeof problem === "string") return problem;
  return "line" in problem ? formatProblem(problem) : problem.message;
}

/** Ends a command, from any depth, with `exitCode`. Without problems, the command has printed what is wrong. */
export class CommandFailure extends Error {
  readonly problems: readonly Problem[];
  readonly exitCode: ExitCode;

  constructor(problems: Problem | readonly Problem[] = [], exitCode: ExitCode = EXIT_FAILURE) {
    const all = [problems].flat();
    super(all.map(problemText).join("; "));
    this.problems = all;
    this.exitCode = exitCode;
  }
}

/** Returns the value of a success. A failure throws {@link CommandFailure}. */
export function orFail<T>(result: Result<T, Problem | readonly Problem[]>): T {
  if (result.ok) return result.value;
  throw new CommandFailure(result.error);
}

/** Resolves to the value of `work`, or to the {@link CommandFailure} with which it rejects. Rejects with other errors. */
export const orFailure = <T>(work: Promise<T>): Promise<T | CommandFailure> =>
  work.catch((error: unknown) => {
    if (error instanceof CommandFailure) return error;
    throw error;
  });

/** Prints why a command failed, and returns its exit code. With `hasTrace`, an unexpected exception has a stack trace. */
export function reportFailure(error: unknown, { err }: Pick<CommandContext, "err">, hasTrace = false): ExitCode {
  if (error instanceof CommandFailure) {
    printProblems({ err }, error.problems, "proxywarden: ");
    return error.exitCode;
  }
  const text = (hasTrace && error instanceof Error && error.stack) || errorMessage(error);
  err.write(`proxywarden: ${text}\n`);
  return EXIT_FAILURE;
}

/** Prints each problem on a line of standard error. */
export function printProblems({ err }: Pick<CommandContext, "err">, problems: readonly Problem[], prefix = ""): void {
  for (const problem of problems) err.write(`${prefix}${problemText(problem)}\n`);
}

/** Prints each warning on a line of standard error. */
export function printWarnings({ err, env }: Pick<CommandContext, "err" | "env">, warnings: readonly Problem[]): void {
  printProblems({ err }, warnings, `${createPaint(err, env)("warning", "warning:")} `);
}

/** The option `--output` of commands that print a table or a list. */
export interface OutputOption {
  readonly output: "text" | "json";
}

/** Prints a value as indented JSON, or as the text that `format` returns, which `paint` colors. */
export function print<T>(
  { out, env }: Pick<CommandContext, "out" | "env">,
  { output }: OutputOption,
  value: T,
  format: (value: T, paint: Paint) => string,
): void {
  out.write(output === "json" ? `${JSON.stringify(value, null, 2)}\n` : format(value, createPaint(out, env)));
}

/** Resolves to the value of `work`. Rejects with {@link CommandFailure} when the process is asked to stop. */
export const orStopped = <T>(work: Promise<T>, stop: AbortSignal): Promise<T> =>
  Promise.race([failWhenAborted(stop), work]);

async function failWhenAborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw stopFailure(signal);
}

/**
 * Returns a handler of rejections that turns an error into a failure with `prefix`. {@link CommandFailure} is passed on.
 */
export const failWith =
  (prefix: string) =>
  (error: unknown): Result<never, string> => {
    if (error instanceof CommandFailure) throw error;
    return fail(`${prefix}: ${errorMessage(error)}`);
  };

/** Returns the failure of a command that was asked to stop: the signal's reason if it is one. */
export const stopFailure = ({ reason }: AbortSignal): CommandFailure =>
  reason instanceof CommandFailure ? reason : new CommandFailure("stopped");

/** Resolves when `signal` aborts. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
