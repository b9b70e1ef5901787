import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore, type SqliteStateStore } from "../../../src/journal/sqlite/store.ts";
import type {
  Clock,
  ForwardedCommands,
  Lease,
  LeaseHolder,
  SharedState,
  StateStore,
} from "../../../src/model/ports.ts";
import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";
import type { CommandReply, OperatorCommand } from "../../../src/model/remediation/operator-command.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";

/** A lease, a journal and forwarded commands that the daemons of a test share, on its clock. */
export interface SharedDatabase {
  readonly store: SqliteStateStore;
  readonly leaseMs: DurationMs;
  /** The daemon that holds the lease now; null: none. */
  holder(): string | null;
  epoch(): number;
  /** Connects a daemon. `clock`: that of the daemon. */
  connect(holder: string, clock: Clock): DatabaseConnection;
}

/** A daemon's connection to the database, which the test can disturb. */
export interface DatabaseConnection {
  readonly state: SharedState;
  isReachable: boolean;
  /** Statements wait for this. Null: they do not wait. */
  hanging: Promise<void> | null;
  /** Called when a commit has been written. What it returns is waited for before the daemon learns of it. */
  onCommitted(changes: readonly JournalChange[]): Promise<void> | void;
}

interface CommandRow {
  readonly id: number;
  readonly command: OperatorCommand;
  readonly at: MonotonicMs;
  reply: CommandReply | null;
}

/** What the daemons share. */
interface Shared {
  readonly store: SqliteStateStore;
  readonly lease: { holder: string; epoch: number; expiresAt: MonotonicMs };
  readonly commands: CommandRow[];
  readonly clock: Clock;
  readonly leaseMs: DurationMs;
}

const isFree = ({ lease, clock }: Shared): boolean => lease.expiresAt <= clock.monotonic();

/** Creates a database without a leader. */
export function createSharedDatabase(clock: Clock, leaseMs: DurationMs = 15 * SECOND_MS): SharedDatabase {
  const lease = { holder: "", epoch: 0, expiresAt: Number.NEGATIVE_INFINITY };
  const shared: Shared = { store: createMemoryStateStore(), lease, commands: [], clock, leaseMs };
  return {
    store: shared.store,
    leaseMs,
    holder: () => (isFree(shared) ? null : lease.holder),
    epoch: () => lease.epoch,
    connect: (holder, ownClock) => connect(shared, holder, ownClock),
  };
}

/** Runs a statement. A statement that can't reach the database fails. */
type Query = <T>(run: () => T | Promise<T>) => Promise<T>;

function connect(shared: Shared, holder: string, ownClock: Clock): DatabaseConnection {
  const { store } = shared;
  const { journal } = store;
  const controls: Omit<DatabaseConnection, "state"> = { isReachable: true, hanging: null, onCommitted() {} };
  const query: Query = async (run) => {
    await Promise.resolve();
    await controls.hanging;
    if (!controls.isReachable) throw new Error("the database can't be reached");
    return run();
  };
  const { lease, assertFenced } = createLease(shared, holder, ownClock, query);
  const readers: SharedState["journal"] = {
    load: (since) => query(() => journal.load(since)),
    facts: () => query(() => journal.facts()),
    decisions: (filter) => query(() => journal.decisions(filter)),
    actions: (filter) => query(() => journal.actions(filter)),
    episodes: (filter) => query(() => journal.episodes(filter)),
    operatorCommands: (filter) => query(() => journal.operatorCommands(filter)),
  };
  async function commit(changes: readonly JournalChange[]): Promise<void> {
    await query(() => {
      assertFenced(true);
      return journal.commit(changes);
    });
    await controls.onCommitted(changes);
  }
  const leaderJournal: Journal = { ...readers, commit, prune: (before) => query(() => journal.prune(before)) };
  const calls: StateStore["calls"] = {
    since: store.calls.since,
    add: (day, count) => query(() => store.calls.add(day, count)),
  };
  const state: SharedState = {
    lease,
    forwardedCommands: forwardedCommandsOf(shared, query),
    journal: readers,
    callsSince: (day) => query(() => store.calls.since(day)),
    openStore: (): Promise<StateStore> =>
      query(() => ({ calls, journal: leaderJournal, close: () => lease.release().catch(() => undefined) })),
    unusable: new Promise(() => {}),
    close: async () => {},
  };
  return Object.assign(controls, { state });
}

/** Creates a daemon's view of the lease, and the check that a statement of the leader makes. */
function createLease(shared: Shared, holder: string, ownClock: Clock, query: Query) {
  const { lease, clock, leaseMs } = shared;
  let epoch: number | null = null;
  let deadline = Number.NEGATIVE_INFINITY;
  function assertFenced(isCommit: boolean): void {
    if (epoch === null || epoch !== lease.epoch) {
      epoch = null;
      throw new Error("another daemon has become the leader");
    }
    if (isCommit && isFree(shared)) throw new Error("the lease has ended and is not renewed yet");
  }
  const ownLease: Lease = {
    epoch: () => epoch,
    isLeader: () => ownLease.leftMs() > 0,
    leftMs: () => (epoch === null ? 0 : Math.max(0, deadline - ownClock.monotonic())),
    acquire() {
      const sentAt = ownClock.monotonic();
      return query(() => {
        if (!isFree(shared)) return false;
        Object.assign(lease, { holder, epoch: lease.epoch + 1, expiresAt: clock.monotonic() + leaseMs });
        epoch = lease.epoch;
        deadline = sentAt + leaseMs;
        return true;
      });
    },
    renew() {
      const sentAt = ownClock.monotonic();
      return query(() => {
        assertFenced(false);
        lease.expiresAt = clock.monotonic() + leaseMs;
        deadline = sentAt + leaseMs;
      });
    },
    async release() {
      const released = epoch;
      epoch = null;
      if (released === null) return;
      await query(() => {
        if (released === lease.epoch) lease.expiresAt = Number.NEGATIVE_INFINITY;
      });
    },
    current: () =>
      query((): LeaseHolder | null => {
        const leftMs = Math.max(0, lease.expiresAt - clock.monotonic());
        const url = `http://${lease.holder}`;
        return lease.epoch === 0 ? null : { holder: lease.holder, url, epoch: lease.epoch, leftMs };
      }),
  };
  return { lease: ownLease, assertFenced };
}

function forwardedCommandsOf({ commands: rows, clock }: Shared, query: Query): ForwardedCommands {
  return {
    submit: (command) =>
      query(() => {
        rows.push({ id: rows.length + 1, command, at: clock.monotonic(), reply: null });
        return rows.length;
      }),
    reply: (id) => query(() => rows[id - 1]!.reply),
    pending: () =>
      query(() =>
        rows.flatMap(({ id, command, at, reply }) =>
          reply === null ? [{ ...command, id, ageMs: clock.monotonic() - at }] : [],
        ),
      ),
    answer: (id, reply) =>
      query(() => {
        rows[id - 1]!.reply = reply;
      }),
  };
}
