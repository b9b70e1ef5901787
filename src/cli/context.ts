import { readFileSync } from "node:fs";
import { errorMessage, fail, ok, type Result } from "../base/result.ts";
import { readRegularFile } from "../platform/text-file.ts";

/** What a command reads and writes: the process, or a test's replacement. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
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

/** The option `--output` of commands that print a table or a list. */
export interface OutputOption {
  readonly output: "text" | "json";
}

/** Prints a value as indented JSON, or as the text that `format` returns. */
export const print = <T>(
  { out }: Pick<CommandContext, "out">,
  { output }: OutputOption,
  value: T,
  format: (value: T) => string,
): void => out.write(output === "json" ? `${JSON.stringify(value, null, 2)}\n` : format(value));

/** Larger than any valid YAML file and any CA bundle. */
const TEXT_FILE_BYTES_MAX = 1_048_576;

/** Reads a text file of at most 1 MiB, without its byte order mark. The error names the file and the reason. */
export function readTextFile(path: string): Result<string, string> {
  const read = readRegularFile(path, TEXT_FILE_BYTES_MAX);
  return read.ok ? ok(read.value.text.replace(/^\uFEFF/, "")) : fail(`can't read ${path}: ${read.error}`);
}

/** As {@link readTextFile}; `-` is standard input, which can be read once. */
export function readTextInput(path: string): Result<string, string> {
  if (path !== "-") return readTextFile(path);
  try {
    const text = readFileSync(0, "utf8");
    return text.length <= TEXT_FILE_BYTES_MAX ? ok(text) : fail("standard input is longer than 1 MiB");
  } catch (error) {
    return fail(`can't read standard input: ${errorMessage(error)}`);
  }
}

/** Resolves when `signal` aborts. */
export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
