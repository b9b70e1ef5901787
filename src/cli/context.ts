import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createPaint, type Paint } from "./output/text.ts";

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
 * What a shell runs for this program: an npm script in a checkout, whose files are TypeScript, the installed command
 * otherwise.
 */
export const PROGRAM = import.meta.url.endsWith(".ts") ? "npm start --" : "proxywarden";

/** Where a command prints. */
export interface Output {
  write(text: string): void;
  readonly isTTY?: boolean;
}

/** Exit codes. */
export const EXIT_OK = 0;
export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;
export type ExitCode = typeof EXIT_OK | typeof EXIT_FAILURE | typeof EXIT_USAGE;

/** Prints each problem on a line, and returns the exit code of a failure. */
export function failWith({ err }: Pick<CommandContext, "err">, problems: string | readonly string[]): ExitCode {
  for (const problem of [problems].flat()) err.write(`proxywarden: ${problem}\n`);
  return EXIT_FAILURE;
}

/** Prints what is wrong with the arguments, and returns the exit code of wrong usage. */
export function failUsage(context: Pick<CommandContext, "err">, problem: string): ExitCode {
  failWith(context, problem);
  return EXIT_USAGE;
}

/** The option `--output` of commands that print a table or a list. */
export interface OutputOption {
  readonly output: "text" | "json";
}

/**
 * Prints a value as indented JSON, or as the text that `format` returns, which `paint` colors. Returns the exit code of
 * a success.
 */
export function print<T>(
  { out, env }: Pick<CommandContext, "out" | "env">,
  { output }: OutputOption,
  value: T,
  format: (value: T, paint: Paint) => string,
): ExitCode {
  out.write(output === "json" ? `${JSON.stringify(value, null, 2)}\n` : format(value, createPaint(out, env)));
  return EXIT_OK;
}

/** Resolves when `signal` aborts. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
