import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";

/** A change of the journal at which a process kills itself. */
export interface CrashPoint {
  /** `during`: the commit is on its way to the database, and its result is not known. */
  readonly when: "before" | "during" | "after";
  readonly boundary: CrashBoundary;
  /** Only changes about this node; absent: about any node. */
  readonly node?: string;
}

/** The changes of an episode, in order. */
const boundaries = {
  begun: (change) => change.kind === "episode" && change.row.state === "firing",
  intended: (change) => change.kind === "action" && change.row.state === "intended",
  posting: (change) => change.kind === "action" && change.row.state === "posting",
  sent: (change) => change.kind === "action" && change.row.state === "sent",
  ended: (change) => change.kind === "action" && change.row.state === "ended",
  closed: (change) => change.kind === "episode" && change.row.closedAt !== null,
} satisfies Readonly<Record<string, (change: JournalChange) => boolean>>;

export type CrashBoundary = keyof typeof boundaries;

/** Names of the boundaries, in order. */
export const CRASH_BOUNDARIES = Object.keys(boundaries) as readonly CrashBoundary[];

/** Returns a journal at whose first commit with a change of the boundary this process kills itself. */
export function crashAt(journal: Journal, { when, boundary, node }: CrashPoint): Journal {
  const isFatal = (change: JournalChange) =>
    boundaries[boundary](change) &&
    (node === undefined || ("row" in change && "node" in change.row && change.row.node === node));
  const die = () => process.kill(process.pid, "SIGKILL");
  return {
    ...journal,
    async commit(changes) {
      const dies = changes.some(isFatal);
      if (dies && when === "before") die();
      const committed = journal.commit(changes);
      // A connection that is open sends the statement within two turns of the event loop.
      if (dies && when === "during") setImmediate(() => setImmediate(die));
      await committed;
      if (dies) die();
    },
  };
}
