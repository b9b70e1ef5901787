import type { DurationMs } from "../base/duration.ts";
import type { Result } from "../base/result.ts";
import type { Journal } from "./remediation/journal.ts";
import type { EpochMs, MonotonicMs } from "./time.ts";

/** Time. The real one is in system/; a virtual one drives tests, and a scaled one drives a demo at speed. */
export interface Clock {
  /** Our wall clock: may jump. For timestamps that people read. */
  now(): EpochMs;
  /** Never jumps. For ages, intervals and pacing. */
  monotonic(): MonotonicMs;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: DurationMs, signal?: AbortSignal): Promise<void>;
}

/** A cron bell: knows when an expression rings next. */
export interface Cron {
  /** First instant after `after` at which `expression` (UTC, five or six fields) rings; null if it never will. */
  nextAfter(expression: string, after: EpochMs): EpochMs | null;
}

/** A request to the management service. `path` begins with `/v1/` and carries its query. */
export interface TransportRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came back. Header names are lower case. The body is whole, and within the transport's cap. */
export interface TransportResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
}

/**
 * Why no response came back. `unreachable`: no connection, so the service saw nothing; `reset`: it broke in between;
 * `aborted`: our signal; `too_large`: the body passed the cap, and was dropped.
 */
export interface TransportFailure {
  readonly kind: "unreachable" | "reset" | "aborted" | "too_large";
  readonly message: string;
  /** Of `aborted`: nothing had left by then, and nothing will, so the service saw nothing. Absent: it may have. */
  readonly unsent?: true;
}

/** Sends one request, follows no redirect, and never rejects. The time-out is the caller's, through `signal`. */
export interface Transport {
  request(request: TransportRequest, signal: AbortSignal): Promise<Result<TransportResponse, TransportFailure>>;
  close(): Promise<void>;
}

/** Calls made, by day (UTC, such as `2026-11-21`), durable. Both throw where the store refuses. */
export interface CallCounter {
  /** Calls made on `day` and after it. */
  since(day: string): number;
  /** Adds some to a day, and returns once that is durable. */
  add(day: string, calls: number): void;
}

/** Small facts that outlive the process, by key. */
export interface FactStore {
  read(key: string): string | null;
  write(key: string, value: string): void;
}

/** What the store gives the engine. */
export interface StateStore {
  readonly calls: CallCounter;
  readonly facts: FactStore;
  readonly journal: Journal;
  close(): void;
}

/** What varies in a log line, by name. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured log. Messages are constant sentences; what varies is in the fields. No secret is ever a field. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** A secret that may change under us: in the configuration itself, or in a file. */
export interface Secret {
  /** The value in force; never empty. */
  value(): string;
  /** Reads the file again. True if the value changed. An unreadable file keeps the old value and is a failure. */
  refresh(): Result<boolean, string>;
}

/**
 * Looks at what may block a policy. True: it blocks. Neither answer nor error is kept: who asks keeps it. An error
 * blocks as well.
 */
export interface ExternalBlockers {
  /** Whether a Prometheus query gives anything. */
  hasQueryResult(query: string, signal: AbortSignal): Promise<Result<boolean, string>>;
  /** Whether Alertmanager has an alert that fires, not silenced and not inhibited, and that all matchers fit. */
  hasFiringAlerts(matchers: readonly string[], signal: AbortSignal): Promise<Result<boolean, string>>;
}
