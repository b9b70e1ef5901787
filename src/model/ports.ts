import type { DurationMs } from "../base/duration.ts";
import type { Result } from "../base/result.ts";
import type { ExternalBlocker } from "./policy/policy.ts";
import type { Journal } from "./remediation/journal.ts";
import type { EpochMs, MonotonicMs } from "./time.ts";

/** The clock. Tests use a virtual one, and the demo may use a faster one. */
export interface Clock {
  /** Returns the time of the wall clock, which may jump. Use it for timestamps. */
  now(): EpochMs;
  /** Returns a time that never jumps. Use it for ages, intervals and pacing. */
  monotonic(): MonotonicMs;
  /** Resolves after `ms`, or immediately when `signal` aborts. Never rejects. */
  sleep(ms: DurationMs, signal?: AbortSignal): Promise<void>;
}

/** A request to the management service. `path` begins with `/v1/` and includes the query string. */
export interface TransportRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /**
   * Called right before the request is written to its connection. If it returns false, nothing is sent. Absent means
   * true.
   */
  mayBeSent?(): boolean;
}

/** A complete response. Header names are lower case. The body is within the transport's limit. */
export interface TransportResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The client empties it once it has been parsed, and frees its buffer if that is larger than 64 KiB. */
  body: Uint8Array;
}

/**
 * Why there is no response. `unreachable`: there was no connection, so the service received nothing; `reset`: the
 * connection broke; `aborted`: the caller's signal aborted; `too_large`: the body exceeded the limit and was discarded.
 */
export interface TransportFailure {
  readonly kind: "unreachable" | "reset" | "aborted" | "too_large";
  readonly message: string;
  /** Set with `aborted` if nothing was sent. Absent if the service may have received the request. */
  readonly unsent?: true;
}

/** Sends one request, follows no redirect, and never rejects. The caller sets a timeout through `signal`. */
export interface Transport {
  request(request: TransportRequest, signal: AbortSignal): Promise<Result<TransportResponse, TransportFailure>>;
  close(): Promise<void>;
}

/** Durable count of API calls by day (UTC, such as `2026-11-21`). */
export interface CallCounter {
  /** Number of calls to add in advance, so that calls do not wait for a state that is elsewhere. Absent means none. */
  readonly ahead?: number;
  /** Returns the number of calls added on and after `day`. Throws if the state can't be read. */
  since(day: string): number;
  /**
   * Adds calls to a day, or takes back earlier ones if negative. Resolves once they are durably counted. Rejects if the
   * state can't be written; then none are added.
   */
  add(day: string, calls: number): Promise<void>;
}

/** Small durable values, by key. */
export interface FactStore {
  /** Returns the last value that was written, or null if there is none. */
  read(key: string): string | null;
  /** Stores a value in memory, and makes it durable as soon as possible. */
  write(key: string, value: string): void;
}

/** A fact store that can compute a value at the time it is written. */
export interface LazyFactStore extends FactStore {
  /**
   * Computes a value and writes it after the current synchronous code or, if other changes are recorded before that, in
   * the same transaction as those. A later call with the same key replaces `compute`.
   */
  writeLater(key: string, compute: () => string): void;
}

/** The durable state. */
export interface StateStore {
  readonly calls: CallCounter;
  readonly journal: Journal;
  /** Closes the store. Further calls have no effect. */
  close(): Promise<void>;
}

/** Fields of a log line. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured log. Messages are constant; values are in the fields. Secrets are never logged. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** A secret in the configuration or in a file; a file may change while the daemon runs. */
export interface Secret {
  /** Returns the current value, which is never empty. */
  value(): string;
  /**
   * Reads the file again, and returns whether the value changed. Fails if the file can't be read; the old value is then
   * kept.
   */
  refresh(): Result<boolean, string>;
}

/** Asks Prometheus and Alertmanager whether they block a policy. Results are not cached. */
export interface ExternalBlockers {
  /**
   * Returns whether a Prometheus query has a result, or whether Alertmanager has a firing alert that matches all
   * matchers and is neither silenced nor inhibited. Both true and an error block a policy.
   */
  blocks(blockedBy: ExternalBlocker, signal: AbortSignal): Promise<Result<boolean, string>>;
}
