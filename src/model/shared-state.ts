import type { DurationMs } from "../base/duration.ts";
import type { StateStore } from "./ports.ts";
import type { Journal, JournalQueries } from "./remediation/journal.ts";
import type { CommandReply, OperatorCommand } from "./remediation/operator-command.ts";

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
