import type { StateStore, Transport } from "../../../src/model/ports.ts";
import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";
import type { VirtualClock } from "../../../src/simulator/clock.ts";

/** Something that reached the disk or the wire. */
export type ProcessEvent =
  | { readonly kind: "commit"; readonly changes: readonly JournalChange[] }
  | { readonly kind: "request" | "answer"; readonly method: string; readonly path: string };

/** Failures of a process and its disk; a test sets them at any time. */
export interface InjectedFailures {
  /** Every write fails with this message; null: writes succeed. */
  writeError: string | null;
  /** The process is killed at the first commit that `changes` accepts, right before or after it reaches the disk. */
  crashAt: {
    readonly when: "before" | "after";
    readonly changes: (changes: readonly JournalChange[]) => boolean;
  } | null;
}

/** External dependencies of one process. All of them stop working when the process is killed. */
export interface CrashableProcess {
  readonly clock: VirtualClock;
  readonly transport: Transport;
  readonly store: StateStore;
  isAlive(): boolean;
  /** Kills the process like SIGKILL: nothing that it has under way continues. */
  kill(): void;
}

/** Promises of a killed process never resolve. */
const neverSettles = new Promise<never>(() => {});

/** Creates a process over a clock, a transport and a store that outlive it. Appends what happens to `events`. */
export function createCrashableProcess(
  outside: { readonly clock: VirtualClock; readonly transport: Transport; readonly store: StateStore },
  failures: InjectedFailures,
  events: ProcessEvent[],
): CrashableProcess {
  let isAlive = true;
  const ifAlive = async <T>(value: T): Promise<T> => (isAlive ? value : neverSettles);

  async function commit(changes: readonly JournalChange[]): Promise<void> {
    if (!isAlive) throw new Error("the process is dead");
    if (failures.writeError !== null) throw new Error(failures.writeError);
    const isLast = failures.crashAt?.changes(changes) === true;
    if (!isLast || failures.crashAt?.when === "after") {
      await outside.store.journal.commit(changes);
      events.push({ kind: "commit", changes });
    }
    if (!isLast) return;
    isAlive = false;
    failures.crashAt = null;
    throw new Error("the process is dead");
  }

  const journal: Journal = { ...outside.store.journal, commit };
  return {
    clock: { ...outside.clock, sleep: async (ms, signal) => ifAlive(await outside.clock.sleep(ms, signal)) },
    transport: {
      async request(request, signal) {
        if (!isAlive) return neverSettles;
        const { method, path } = request;
        events.push({ kind: "request", method, path });
        const answer = await outside.transport.request(request, signal);
        if (isAlive) events.push({ kind: "answer", method, path });
        return ifAlive(answer);
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
