import { type BigIntStats, statSync } from "node:fs";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { Clock, Secret } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import { readRegularFile } from "./text-file.ts";

/** Interval of checks for a changed file. Each check is a system call. */
const CHECK_INTERVAL_MS: DurationMs = SECOND_MS;
/** Maximum size of a secret. Keys, tokens and URLs are far smaller. */
const SECRET_BYTES_MAX = 16_384;
/** Maximum size of a PEM file. Even the CA bundle of an operating system is smaller. */
const PEM_BYTES_MAX = 1_048_576;

/** Returns a secret with a fixed value, such as one in the configuration itself. Throws if `value` is empty. */
export function inlineSecret(value: string): Secret {
  if (value === "") throw new Error("a secret must not be empty");
  return { value: () => value, refresh: () => ok(false) };
}

/**
 * Returns a secret in a file of one line, without its trailing line break. The file is read now and on `refresh`.
 * `value` checks at most once a second whether the file's identity, size or times have changed (also through a symbolic
 * link, as Kubernetes mounts secrets), and if so reads it again. The error names the file and what is wrong with it.
 */
export const fileSecret = (path: string, clock: Pick<Clock, "monotonic">): Result<Secret, string> =>
  watchedSecretFile(path, clock, () => readSecret("secret file", path, SECRET_BYTES_MAX, singleLineProblem));

/** Returns a certificate or key in PEM. Its file is read again like that of {@link fileSecret}. */
export const pemFile = (path: string, clock: Pick<Clock, "monotonic">): Result<Secret, string> =>
  watchedSecretFile(path, clock, () => readSecret("PEM file", path, PEM_BYTES_MAX, pemProblem));

function watchedSecretFile(
  path: string,
  clock: Pick<Clock, "monotonic">,
  readFile: () => Result<SecretFileContent, string>,
): Result<Secret, string> {
  const first = readFile();
  if (!first.ok) return first;
  let current = first.value;
  let checkedAt: MonotonicMs = clock.monotonic();

  const refresh = (): Result<boolean, string> => {
    const read = readFile();
    if (!read.ok) return read;
    const changed = read.value.text !== current.text;
    current = read.value;
    return ok(changed);
  };
  const value = (): string => {
    const now = clock.monotonic();
    if (now - checkedAt >= CHECK_INTERVAL_MS) {
      checkedAt = now;
      // If the file can't be read, the old stamp remains, so the next check tries again.
      if (fileStampAt(path) !== current.stamp) refresh();
    }
    return current.text;
  };
  return ok({ value, refresh });
}

/** Content of a file, and a stamp that changes with the file. */
interface SecretFileContent {
  readonly text: string;
  readonly stamp: string;
}

/** Reads a file, which messages call `noun`. `problemOf` returns what is wrong with a text, or null if it is valid. */
function readSecret(
  noun: string,
  path: string,
  bytesMax: number,
  problemOf: (text: string) => string | null,
): Result<SecretFileContent, string> {
  const read = readRegularFile(path, bytesMax);
  if (!read.ok) return fail(`${noun} ${path} can't be read: ${read.error}`);
  const text = read.value.text.replace(/\r?\n$/, "");
  const problem = problemOf(text);
  // The stamp is of the file that was read, not of one that replaced it a moment later.
  return problem === null ? ok({ text, stamp: fileStampOf(read.value.stats) }) : fail(`${noun} ${path} ${problem}`);
}

function singleLineProblem(text: string): string | null {
  if (text.trim() === "") return "is empty; it should hold the secret, on one line";
  // A control character would make a header with the secret invalid, with an error that does not name the file.
  if (/\p{Cc}/u.test(text))
    return "holds more than one line, or a control character; the secret must be one line of text";
  if (!/^[\x20-\x7e]*$/.test(text)) {
    return "holds a byte order mark, or another character that is not allowed in a header; the secret must be plain ASCII";
  }
  return null;
}

const pemProblem = (text: string): string | null =>
  text.includes("-----BEGIN ") ? null : "holds no PEM; it should begin with a line such as -----BEGIN CERTIFICATE-----";

/** Returns a stamp of a file's identity, size and times, to detect changes; `unreadable` if it can't be read. */
export function fileStampAt(path: string): string {
  try {
    return fileStampOf(statSync(path, { bigint: true }));
  } catch {
    return "unreadable";
  }
}

const fileStampOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats) => [dev, ino, size, mtimeNs, ctimeNs].join(":");
