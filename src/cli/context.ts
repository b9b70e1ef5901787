import { fail, ok, type Result } from "../base/result.ts";
import { readRegularFile } from "../platform/text-file.ts";

/** What a command reads and writes. `main.ts` passes the real process, tests pass their own. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly out: Output;
  readonly err: Output;
  /** Aborts when the process is asked to stop (SIGTERM, SIGINT). */
  readonly stop: AbortSignal;
  /** Calls `then` at every SIGHUP. */
  onSighup(then: () => void): void;
  readonly version: string;
}

/** Where a command prints. */
export interface Output {
  write(text: string): void;
  readonly isTTY?: boolean;
}

/** Exit codes: success; failure; usage error. */
export const EXIT_OK = 0;
export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;
export type ExitCode = typeof EXIT_OK | typeof EXIT_FAILURE | typeof EXIT_USAGE;

/** Prints what went wrong, a line each, and returns the exit code of a failure. */
export function failWith({ err }: Pick<CommandContext, "err">, problems: string | readonly string[]): ExitCode {
  err.write(
    [problems]
      .flat()
      .map((problem) => `proxywarden: ${problem}\n`)
      .join(""),
  );
  return EXIT_FAILURE;
}

/** Prints a value as indented JSON. */
export const printJson = ({ out }: Pick<CommandContext, "out">, value: unknown): void =>
  out.write(`${JSON.stringify(value, null, 2)}\n`);

/** Largest text file that is read: larger than any valid YAML file and than a system's CA bundle. */
const TEXT_FILE_BYTES_MAX = 1_048_576;

/** Reads a text file of at most 1 MiB, without its byte order mark. The error names the file and the reason. */
export function readTextFile(path: string): Result<string, string> {
  const read = readRegularFile(path, TEXT_FILE_BYTES_MAX);
  return read.ok ? ok(read.value.text.replace(/^\uFEFF/, "")) : fail(`can't read ${path}: ${read.error}`);
}

/** Resolves when `signal` aborts. */
export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
