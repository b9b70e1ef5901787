import type { DurationMs } from "../base/duration.ts";
import type { StateStore } from "./ports.ts";
import type { Journal, JournalQueries } from "./remediation/journal.ts";
import type { CommandReply, OperatorCommandName } from "./remediation/operator-command.ts";

/** The current leader, or the last one. */
export interface LeaseHolder {
  /** Name of the daemon's instance. */
  readonly holder: string;
  /** Where the daemon's web server is reached, or null if not known. */
  readonly url: string | null;
  readonly epoch: number;
  /** Time until the lease ends, by the database's clock; 0: it has ended, or was released. */
  readonly leftMs: DurationMs;
}

/** The lease of the leader. The daemon that holds it polls and acts; the others stand by. */
export interface Lease {
  /** The epoch of this daemon's leadership, which grows with every leader, or null if it does not lead. */
  epoch(): number | null;
  /**
   * Whether this daemon leads, and no other daemon can have taken over yet. Never waits, so it can be asked before each
   * call.
   */
  isLeader(): boolean;
  /** Time until this daemon's deadline; 0: it has passed, or this daemon does not lead. */
  leftMs(): DurationMs;
  /**
   * Takes the lease if it is free. False if another daemon holds it. Rejects if the database can't be reached, or if a
   * later version has changed its schema.
   */
  acquire(): Promise<boolean>;
  /**
   * Prolongs the lease, also after its end if no other daemon has taken it. Rejects if the database can't be reached,
   * or if another daemon has taken the lease: then the epoch is null.
   */
  renew(): Promise<void>;
  /** Gives the lease up, so that another daemon can take it at once. Rejects if the database can't be reached. */
  release(): Promise<void>;
  /**
   * Returns who holds the lease, or held it last, or null if no daemon has held it. Rejects if the database can't be
   * reached.
   */
  current(): Promise<LeaseHolder | null>;
}

/** A command that an operator gave to a standby. */
export interface ForwardedOrder {
  readonly command: Exclude<OperatorCommandName, "reload">;
  /** The node or action that it is about; empty: neither. */
  readonly target: string;
  readonly reason: string;
  /** How long its effect lasts; null or absent until a command ends it. */
  readonly forMs?: DurationMs | null;
  /** Name of the operator, or null if no operators are configured. */
  readonly operator: string | null;
}

/**
 * Commands on their way from a standby to the leader, and the replies. All methods reject if the database can't be
 * reached.
 */
export interface ForwardedOrders {
  /** Writes a command for the leader. Returns its number. */
  submit(order: ForwardedOrder): Promise<number>;
  /** Returns the leader's reply to a command, or null if there is none yet. */
  reply(id: number): Promise<CommandReply | null>;
  /** Returns the commands without a reply, oldest first. Those that waited too long have lapsed and are left out. */
  pending(): Promise<readonly (ForwardedOrder & { readonly id: number })[]>;
  answer(id: number, reply: CommandReply): Promise<void>;
}

/** A state that several daemons share. */
export interface SharedState {
  readonly lease: Lease;
  readonly orders: ForwardedOrders;
  /** What the leader has journaled, for daemons that stand by. */
  readonly journal: JournalQueries & Pick<Journal, "load">;
  /** Number of calls made on or after `day` (UTC), with those that the leader has reserved. */
  callsSince(day: string): Promise<number>;
  /**
   * Opens the store of a leader; the lease must have been acquired. Its facts and counts are those of this moment.
   * Closing it gives the lease up. Rejects if the state can't be read.
   */
  openStore(): Promise<StateStore>;
  /**
   * Resolves with the reason if the database could not be reached when it was opened, and then refuses this daemon.
   * Otherwise it stays pending.
   */
  readonly unusable: Promise<string>;
  /** Closes the connections. May be called again. */
  close(): Promise<void>;
}
