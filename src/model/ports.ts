import type { DurationMs } from "../base/duration.ts";
import type { Result } from "../base/result.ts";
import type { ExternalBlocker } from "./policy/policy.ts";
import type { Journal, JournalQueries } from "./remediation/journal.ts";
import type { CommandReply, OperatorCommand } from "./remediation/operator-command.ts";
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

/** The current leader, or the last one. */
export interface LeaseHolder {
  /** Name of the daemon's instance. */
  readonly holder: string;
  /** Where the daemon's web server is reached, or null if not known. */
  readonly url: string | null;
  readonly epoch: number;
  /** Time until the lease ends, by the database's clock, or 0 if it has ended or was released. */
  readonly leftMs: DurationMs;
}

/** The lease of the leader. The daemon that holds it polls and acts; the others stand by. */
export interface Lease {
  /** Returns the epoch of this daemon's leadership, which increases with each leader, or null if it does not lead. */
  epoch(): number | null;
  /**
   * Returns whether this daemon leads and no other daemon can have taken over. Never waits, so it can be called before
   * each request.
   */
  isLeader(): boolean;
  /** Returns how long this daemon still leads unless it renews the lease, by its own clock; 0 if it does not lead. */
  leftMs(): DurationMs;
  /**
   * Takes the lease if it is free. Resolves to false if another daemon holds it. Rejects if the database can't be
   * reached, or if a later version has changed its schema.
   */
  acquire(): Promise<boolean>;
  /**
   * Renews the lease, even after its end if no other daemon has taken it. Rejects if the database can't be reached, or
   * if another daemon has taken the lease; the epoch is then null.
   */
  renew(): Promise<void>;
  /** Releases the lease, so that another daemon can take it immediately. Rejects if the database can't be reached. */
  release(): Promise<void>;
  /**
   * Returns the daemon that holds the lease or held it last, or null if none has held it. Rejects if the database can't
   * be reached.
   */
  current(): Promise<LeaseHolder | null>;
}

/**
 * Commands on their way from a standby to the leader, and the replies. All methods reject if the database can't be
 * reached.
 */
export interface ForwardedCommands {
  /** Writes a command for the leader. Returns its number. */
  submit(command: OperatorCommand): Promise<number>;
  /** Returns the leader's reply to a command, or null if there is none yet. */
  reply(id: number): Promise<CommandReply | null>;
  /**
   * Returns the commands without a reply, oldest first, and how long ago they were given. Those that waited too long
   * have lapsed and are left out.
   */
  pending(): Promise<readonly (OperatorCommand & { readonly id: number; readonly ageMs: DurationMs })[]>;
  /** Writes the leader's reply to a command. */
  answer(id: number, reply: CommandReply): Promise<void>;
}

/** A state that several daemons share. */
export interface SharedState {
  readonly lease: Lease;
  readonly forwardedCommands: ForwardedCommands;
  /** What the leader has journaled, for daemons that stand by. */
  readonly journal: JournalQueries & Pick<Journal, "load">;
  /** Returns the number of calls made on or after `day` (UTC), including those that the leader has reserved. */
  callsSince(day: string): Promise<number>;
  /**
   * Opens the store of a leader, which must have acquired the lease. Its facts and counts are those of this moment.
   * Closing it releases the lease. Rejects if the state can't be read.
   */
  openStore(): Promise<StateStore>;
  /**
   * Resolves with the reason if the database could not be reached at first and then refuses this daemon. Otherwise it
   * stays pending.
   */
  readonly unusable: Promise<string>;
  /** Closes the connections. Further calls have no effect. */
  close(): Promise<void>;
}
