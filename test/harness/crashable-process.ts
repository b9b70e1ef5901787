import type { StateStore, Transport } from "../../src/model/ports.ts";
import type { Journal, JournalChange } from "../../src/model/remediation/journal.ts";
import type { VirtualClock } from "../../src/simulator/clock.ts";

/** What reached the disk or the wire, in the order in which it did. */
export type ProcessEvent =
  | { readonly kind: "commit"; readonly changes: readonly JournalChange[] }
  | { readonly kind: "request" | "answer"; readonly method: string; readonly path: string };

/** What may go wrong with a process and its disk; a test sets it at any time. */
export interface InjectedFailures {
  /** The disk refuses every write, for this reason. */
  writeError: string | null;
  /** The process dies at a commit of which this is true: right before it is on the disk, or right after. */
  crashAt: {
    readonly when: "before" | "after";
    readonly changes: (changes: readonly JournalChange[]) => boolean;
  } | null;
}

/** The outside of one process: all of it ends with the process. */
export interface CrashableProcess {
  readonly clock: VirtualClock;
  readonly transport: Transport;
  readonly store: StateStore;
  isAlive(): boolean;
  /** As SIGKILL: what it has in hand comes to nothing, here and now. */
  kill(): void;
}

/** What a dead process waits for never comes. */
const neverSettles = new Promise<never>(() => {});

/** A process over what outlives it. What happens is added to `happenings`. */
export function createCrashableProcess(
  outside: { readonly clock: VirtualClock; readonly transport: Transport; readonly store: StateStore },
  mishaps: InjectedFailures,
  happenings: ProcessEvent[],
): CrashableProcess {
  let isAlive = true;
  const alive = async <T>(value: T): Promise<T> => (isAlive ? value : neverSettles);

  function commit(changes: readonly JournalChange[]): void {
    if (!isAlive) throw new Error("the process is dead");
    if (mishaps.writeError !== null) throw new Error(mishaps.writeError);
    const isLast = mishaps.crashAt?.changes(changes) === true;
    if (!isLast || mishaps.crashAt?.when === "after") {
      outside.store.journal.commit(changes);
      happenings.push({ kind: "commit", changes });
    }
    if (!isLast) return;
    isAlive = false;
    mishaps.crashAt = null;
    throw new Error("the process is dead");
  }

  const journal: Journal = { ...outside.store.journal, commit };
  return {
    clock: { ...outside.clock, sleep: async (ms, signal) => alive(await outside.clock.sleep(ms, signal)) },
    transport: {
      async request(request, signal) {
        if (!isAlive) return neverSettles;
        const { method, path } = request;
        happenings.push({ kind: "request", method, path });
        const answer = await outside.transport.request(request, signal);
        if (isAlive) happenings.push({ kind: "answer", method, path });
        return alive(answer);
      },
      close: () => Promise.resolve(),
    },
    store: { ...outside.store, journal },
    isAlive: () => isAlive,
    kill() {
      isAlive = false;
    },
  };
}
