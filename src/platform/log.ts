import { destination as fileDestination, type LoggerOptions, pino, stdSerializers, stdTimeFunctions } from "pino";
import { prettyFactory } from "pino-pretty";
import type { Log } from "../model/ports.ts";

/** Levels of the log, from the most talkative to the quietest. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What is written, and how: `json` for machines, `pretty` for a person at a terminal. */
export interface LogOptions {
  readonly level: LogLevel;
  readonly format: "json" | "pretty";
}

/** Where finished lines go, each with its line break. Colours are for a terminal, unless NO_COLOR forbids them. */
export interface LogDestination {
  write(line: string): void;
  readonly isTTY?: boolean;
}

/** Lines that wait for a stuck stderr; what comes beyond is dropped, for the daemon goes on without its log. */
const LOG_BUFFER_BYTES_MAX = 1_048_576;

// No field is meant to carry a secret. If one does by mistake, at whatever depth, it would come under such a name;
// messages of errors may quote a header or a URL.
const REDACTIONS: readonly (readonly [RegExp, string])[] = [
  [/("[\w-]*(?:authorization|api[_-]?key|token|secret|password|cookie)":)"(?:[^"\\]|\\.)*"/gi, '$1"[redacted]"'],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]+/gi, "$1 [redacted]"],
  [/:\/\/[^\s/@"\\]*:[^\s/@"\\]*@/g, "://[redacted]@"],
];
const redact = (line: string) => REDACTIONS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), line);

/**
 * The structured log. JSON lines carry `level` as a word, `time` in ISO 8601 (UTC), the fields, and `msg`. Without a
 * destination they go to stderr, written aside so that a stuck pipe stops nothing, and flushed when the process exits.
 * As a second line of defence, fields with a secret's name, bearer tokens and passwords in URLs are blotted out.
 */
export function createLog(
  { level, format }: LogOptions,
  destination: LogDestination = stderrDestination(),
): Log & { setLevel(level: LogLevel): void } {
  const pretty =
    format === "pretty"
      ? prettyFactory({ colorize: destination.isTTY === true, translateTime: "UTC:HH:MM:ss.l", singleLine: true })
      : null;
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: stdSerializers.err },
    hooks: { streamWrite: (line) => (pretty === null ? redact(line) : (pretty(redact(line)) ?? "")) },
  };
  const logger = pino(options, destination);
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    setLevel: (next) => {
      logger.level = next;
    },
  };
}

function stderrDestination(): LogDestination {
  const stream = fileDestination({ fd: 2, sync: false, maxLength: LOG_BUFFER_BYTES_MAX });
  // A stderr that nobody reads any more must not end the daemon.
  stream.on("error", () => {});
  return Object.assign(stream, { isTTY: process.stderr.isTTY === true && process.stderr.hasColors() });
}
