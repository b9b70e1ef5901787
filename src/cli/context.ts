import { fail, ok, type Result } from "../base/result.ts";
import { readRegularFile } from "../platform/text-file.ts";

/** The environment of a command. main.ts passes the real one, tests pass their own. */
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

/** Bytes of a text file: as many as the longest YAML file can have, and more than a system's bundle of authorities. */
const TEXT_FILE_BYTES_MAX = 1_048_576;

/** Reads a text file of at most 1 MiB, without its byte order mark. The error says which file, and why not. */
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
