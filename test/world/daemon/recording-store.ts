import type { StateStore } from "../../../src/model/ports.ts";
import type { Action, Episode, NodeHold } from "../../../src/model/remediation/episode.ts";
import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";

/** Rows that were committed to the store: the state that the next process would load. */
export interface RecordedState {
  /** Writes through to the store. */
  readonly journal: Journal;
  readonly actions: ReadonlyMap<string, Action>;
  readonly episodes: ReadonlyMap<string, Episode>;
  readonly facts: ReadonlyMap<string, string>;
  /** Actions being sent, or sent and not yet verified. Without dry runs. */
  readonly inFlight: ReadonlySet<string>;
  /** Open episodes. Without dry runs. */
  readonly open: ReadonlySet<string>;
  /** Actions that an operator approved. */
  readonly approved: ReadonlySet<string>;
  /** Number of actions that ended in the current process, by outcome. Without dry runs. */
  readonly endedActions: ReadonlyMap<string, number>;
  /** Resets what is counted per process. */
  startProcess(): void;
  holdsOf(node: string): readonly NodeHold[];
  commits(): number;
  /** Number of recorded decisions with each hold reason. */
  readonly reasons: ReadonlyMap<string, number>;
}

/** Callbacks around each commit. An exception from `before` or `after` reaches the writer. */
export interface CommitHooks {
  before(changes: readonly JournalChange[]): void;
  after(changes: readonly JournalChange[]): void;
  /** Receives the timers that started firing in one commit. */
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

/** Creates the recorded state of an empty store. */
export function createRecordedState(store: StateStore, hooks: CommitHooks): RecordedState {
  const actions = new Map<string, Action>();
  const episodes = new Map<string, Episode>();
  const facts = new Map<string, string>();
  const holds = new Map<string, NodeHold>();
  const inFlight = new Set<string>();
  const open = new Set<string>();
  const firing = new Set<string>();
  const approved = new Set<string>();
  const endedActions = new Map<string, number>();
  let firings: { policy: string; node: string }[] = [];
  let commits = 0;
  let hasFailedCommit = false;
  const reasons = new Map<string, number>();

  function applyAction(row: Action): void {
    const before = actions.get(row.id);
    if (before === undefined && !row.shadow && SENT_STATES.has(row.state)) {
      hooks.violation("invalid transition", `${row.id} is new and already ${row.state}`);
    }
    const isAllowed = before === undefined || NEXT_STATES[before.state].includes(row.state);
    if (!isAllowed && !row.shadow)
      hooks.violation("invalid transition", `${row.id} went from ${before.state} to ${row.state}`);
    if (row.state === "ended" && before?.state !== "ended" && !row.shadow && row.outcome !== null) {
      endedActions.set(row.outcome, (endedActions.get(row.outcome) ?? 0) + 1);
    }
    actions.set(row.id, row);
    if (row.state === "approved") approved.add(row.id);
    if (!row.shadow && IN_FLIGHT_STATES.has(row.state)) inFlight.add(row.id);
    else inFlight.delete(row.id);
  }

  function applyEpisode(row: Episode): void {
    const before = episodes.get(row.id);
    // A closed episode may still be marked as replaced when another node takes over the ID.
    if (before !== undefined && before.closedAt !== null && row.replaced !== true) {
      hooks.violation("invalid transition", `${row.id} was closed (${before.state}) and is now ${row.state}`);
    }
    episodes.set(row.id, row);
    if (row.closedAt === null && !row.shadow) open.add(row.id);
    else open.delete(row.id);
  }

  function apply(change: JournalChange): void {
    switch (change.kind) {
      case "action":
        applyAction(change.row);
        return;
      case "episode":
        applyEpisode(change.row);
        return;
      case "timer": {
        const { policy, node, state } = change.row;
        const key = `${policy} ${node}`;
        if (state === "firing" && !firing.has(key)) {
          firing.add(key);
          firings.push({ policy, node });
        } else if (state === "pending") firing.delete(key);
        // A lapsed timer has fired already and is not counted again.
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
        const hadFailedCommit = hasFailedCommit;
        hasFailedCommit = true;
        hooks.before(changes);
        store.journal.commit(changes);
        firings = [];
        for (const change of changes) apply(change);
        // After a failed commit the changes arrive late, so the time of a firing is unknown.
        if (firings.length > 0 && !hadFailedCommit) hooks.onFirings(firings);
        hasFailedCommit = false;
        hooks.after(changes);
      },
    },
    ...{ actions, episodes, facts, inFlight, open, approved, reasons, endedActions },
    startProcess: () => endedActions.clear(),
    holdsOf: (node) => [...holds.values()].filter((hold) => hold.node === node),
    commits: () => commits,
  };
}
