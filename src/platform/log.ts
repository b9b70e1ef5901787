import { type LoggerOptions, pino, stdTimeFunctions } from "pino";
import { prettyFactory } from "pino-pretty";
import type { Config } from "../config/schema/config.ts";
import type { Log, LogFields } from "../model/ports.ts";
import { StderrWriter } from "./stderr-writer.ts";

/** The section `log` of the configuration. */
export type LogConfig = Config["log"];

/** Destination of log lines, which include their line break. */
export interface LogDestination {
  write(line: string): void;
  /** Whether lines in the format `pretty` are colored. Absent means false. */
  readonly isTTY?: boolean;
}

// No field should hold a secret. This is a second line of defense, for fields at any depth whose name suggests a
// secret, and for error messages that quote a header or a URL.
const REDACTIONS: readonly (readonly [RegExp, string])[] = [
  [/("[\w-]*(?:authorization|api[_-]?key|token|secret|password|cookie)":)"(?:[^"\\]|\\.)*"/gi, '$1"[redacted]"'],
  // The words "basic auth" hold no secret.
  [/\b(Bearer|Basic)\s+(?!auth(?![\w.~+/=-]))[\w.~+/=-]+/gi, "$1 [redacted]"],
  [/:\/\/[^\s/@"\\]*:[^\s/@"\\]*@/g, "://[redacted]@"],
];
const redact = (line: string) => REDACTIONS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), line);

/**
 * Creates a structured log. JSON lines carry `level` as a word, `time` in ISO 8601 (UTC), the fields, and `msg`.
 * Without a destination, lines are written to stderr by a {@link StderrWriter}. The values of fields with names such as
 * `token`, bearer and basic credentials, and users and passwords in URLs are redacted.
 */
export function createLog(
  { level, format }: LogConfig,
  destination: LogDestination = stderrDestination(),
): Log & { setLevel(level: LogConfig["level"]): void } {
  const pretty =
    format === "pretty"
      ? prettyFactory({ colorize: destination.isTTY === true, translateTime: "UTC:HH:MM:ss.l", singleLine: true })
      : null;
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    hooks: { streamWrite: (line) => (pretty === null ? redact(line) : (pretty(redact(line)) ?? "")) },
  };
  const logger = pino(options, destination);
  return Object.assign(logger, {
    setLevel(level: LogConfig["level"]) {
      logger.level = level;
    },
  });
}

/** All logs share one writer, so that their lines do not mix. */
const stderr = new StderrWriter();

/** Returns standard error as a destination. A terminal gets colors unless NO_COLOR is set. */
const stderrDestination = (): LogDestination => ({
  write: (line) => stderr.write(line),
  isTTY: process.stderr.isTTY === true && process.stderr.hasColors(),
});

/** A log that drops everything. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Creates a log of a run that must not continue after an exception. It keeps only the first exception (the field `err` of
 * an error). Errors without an exception, such as those about the state of the fleet, are part of a normal run.
 */
export function createFailureLog() {
  let first: unknown = null;
  return {
    ...silentLog,
    error({ err }: LogFields) {
      first ??= err ?? null;
    },
    /** Throws the first exception that was logged, if there is one. */
    throwFirst() {
      if (first !== null) throw first;
    },
  };
}

/** Whether repeated attempts fail. Logs when they begin to fail and when they succeed again, but not each attempt. */
export class FailureState {
  isFailing = false;

  failed(log: Log, fields: LogFields, message: string, level: "warn" | "error" = "warn"): void {
    if (!this.isFailing) log[level](fields, message);
    this.isFailing = true;
  }

  succeeded(log: Log, fields: LogFields, message: string): void {
    if (this.isFailing) log.info(fields, message);
    this.isFailing = false;
  }
}
