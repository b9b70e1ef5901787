import type { StateStore } from "../../../src/model/ports.ts";
import type { Action, Episode, NodeHold } from "../../../src/model/remediation/episode.ts";
import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";

/** What truly reached the store, kept by its rows: the memory that a next process would find. */
export interface RecordedState {
  /** Writes through to the store. */
  readonly journal: Journal;
  readonly actions: ReadonlyMap<string, Action>;
  readonly episodes: ReadonlyMap<string, Episode>;
  readonly facts: ReadonlyMap<string, string>;
  /** Real actions being sent, or sent and not yet judged. */
  readonly inFlight: ReadonlySet<string>;
  /** Open real episodes. */
  readonly open: ReadonlySet<string>;
  /** Actions that a person approved. */
  readonly approved: ReadonlySet<string>;
  /** Actions that ended in the life that runs, by outcome; those of dry runs left out. */
  readonly endings: ReadonlyMap<string, number>;
  /** A life begins. */
  startProcess(): void;
  holdsOf(node: string): readonly NodeHold[];
  commits(): number;
  /** How often a changed decision gave each reason to hold. */
  readonly reasons: ReadonlyMap<string, number>;
}

/** Told before a commit reaches the store, and after: what it throws, the writer meets. */
export interface CommitHooks {
  before(changes: readonly JournalChange[]): void;
  after(changes: readonly JournalChange[]): void;
  /** Timers that began to fire with one commit. */
  onFirings(firings: readonly { readonly policy: string; readonly node: string }[]): void;
  violation(invariant: string, detail: string): void;
}

const IN_FLIGHT_STATES: ReadonlySet<Action["state"]> = new Set(["posting", "sent"]);
const SENT_STATES: ReadonlySet<Action["state"]> = new Set(["posting", "sent", "ended"]);
const NEXT_STATES: Readonly<Record<Action["state"], readonly Action["state"][]>> = {
  awaiting: ["approved", "rejected", "lapsed", "withdrawn"],
  approved: ["intended", "lapsed", "withdrawn"],
  intended: ["posting", "withdrawn", "ended"],
  posting: ["sent", "ended", "withdrawn"],
  sent: ["sent", "ended"],
  ended: [],
  withdrawn: [],
  rejected: [],
  lapsed: [],
};

/** A chronicle of a store that is new. */
export function createRecordedState(store: StateStore, hooks: CommitHooks): RecordedState {
  const actions = new Map<string, Action>();
  const episodes = new Map<string, Episode>();
  const facts = new Map<string, string>();
  const holds = new Map<string, NodeHold>();
  const underWay = new Set<string>();
  const open = new Set<string>();
  const firing = new Set<string>();
  const approved = new Set<string>();
  const endings = new Map<string, number>();
  let firings: { policy: string; node: string }[] = [];
  let commits = 0;
  let isBehind = false;
  const reasons = new Map<string, number>();

  function takeAction(row: Action): void {
    const before = actions.get(row.id);
    if (before === undefined && !row.shadow && SENT_STATES.has(row.state)) {
      hooks.violation("rows", `${row.id} appears as ${row.state}: it was never intended`);
    }
    const isAllowed = before === undefined || NEXT_STATES[before.state].includes(row.state);
    if (!isAllowed && !row.shadow) hooks.violation("rows", `${row.id} went from ${before.state} to ${row.state}`);
    if (row.state === "ended" && before?.state !== "ended" && !row.shadow && row.outcome !== null) {
      endings.set(row.outcome, (endings.get(row.outcome) ?? 0) + 1);
    }
    actions.set(row.id, row);
    if (row.state === "approved") approved.add(row.id);
    if (!row.shadow && IN_FLIGHT_STATES.has(row.state)) underWay.add(row.id);
    else underWay.delete(row.id);
  }

  function takeEpisode(row: Episode): void {
    const before = episodes.get(row.id);
    // Of one that is over it may yet be said that another node has the id since.
    if (before !== undefined && before.closedAt !== null && row.replaced !== true) {
      hooks.violation("rows", `${row.id} was over (${before.state}), and is ${row.state} now`);
    }
    episodes.set(row.id, row);
    if (row.closedAt === null && !row.shadow) open.add(row.id);
    else open.delete(row.id);
  }

  function take(change: JournalChange): void {
    switch (change.kind) {
      case "action":
        takeAction(change.row);
        return;
      case "episode":
        takeEpisode(change.row);
        return;
      case "timer": {
        const { policy, node, state } = change.row;
        const key = `${policy} ${node}`;
        if (state === "firing" && !firing.has(key)) {
          firing.add(key);
          firings.push({ policy, node });
        } else if (state === "pending") firing.delete(key);
        // One that lapsed has fired, and is not counted again.
        return;
      }
      case "timer_gone":
        return void firing.delete(`${change.policy} ${change.node}`);
      case "hold":
        return void holds.set(`${change.row.node} ${change.row.policy}`, change.row);
      case "hold_gone":
        return void holds.delete(`${change.node} ${change.policy}`);
      case "fact":
        return void (change.value === null ? facts.delete(change.key) : facts.set(change.key, change.value));
      case "decision":
        for (const { reason } of change.row.blockers) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        return;
      case "order":
        return;
      default:
        change satisfies never;
    }
  }

  return {
    journal: {
      ...store.journal,
      commit(changes) {
        commits++;
        const wasBehind = isBehind;
        isBehind = true;
        hooks.before(changes);
        store.journal.commit(changes);
        firings = [];
        for (const change of changes) take(change);
        // What could not be written down at its time comes late, and its time is not known.
        if (firings.length > 0 && !wasBehind) hooks.onFirings(firings);
        isBehind = false;
        hooks.after(changes);
      },
    },
    ...{ actions, episodes, facts, inFlight: underWay, open, approved, reasons, endings },
    startProcess: () => endings.clear(),
    holdsOf: (node) => [...holds.values()].filter((hold) => hold.node === node),
    commits: () => commits,
  };
}
