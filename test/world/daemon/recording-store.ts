import { isDeepStrictEqual } from "node:util";
import type { StateStore } from "../../../src/model/ports.ts";
import type { Action, Episode, NodeHold } from "../../../src/model/remediation/episode.ts";
import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";
import { RATE_LIMITED_ATTEMPTS_MAX } from "../../../src/policy/episodes/episode.ts";

/** Callbacks around each commit. An exception from `before` or `after` reaches the writer. */
export interface CommitHooks {
  before(changes: readonly JournalChange[]): void;
  after(changes: readonly JournalChange[]): void;
  /** Resolves when the writer learns of a commit. */
  finish(): Promise<void>;
  /** Receives the timers that started firing in one commit. */
  onFirings(firings: readonly { readonly policy: string; readonly node: string }[]): void;
  violation(invariant: string, detail: string): void;
}

const IN_FLIGHT_STATES: ReadonlySet<Action["state"]> = new Set(["posting", "sent"]);
const SENT_STATES: ReadonlySet<Action["state"]> = new Set(["posting", "sent", "ended"]);
const NEXT_STATES: Readonly<Record<Action["state"], readonly Action["state"][]>> = {
  awaiting: ["approved", "rejected", "lapsed", "withdrawn"],
  approved: ["intended", "rejected", "lapsed", "withdrawn"],
  // An action that could not be sent stays approved. While a commit is under way, only the last change of a row is kept,
  // so that approval may already have ended when it is written.
  intended: ["posting", "approved", "rejected", "lapsed", "withdrawn", "ended"],
  posting: ["sent", "ended", "approved", "rejected", "lapsed", "withdrawn"],
  sent: ["sent", "ended"],
  ended: [],
  // An action that a command has withdrawn is withdrawn again by the round that was about to send it.
  withdrawn: ["withdrawn"],
  // An operator may lift the rejection.
  rejected: ["lapsed"],
  lapsed: [],
};

/**
 * Returns whether `row` repeats `before`, which is written again after a commit that may have failed, or differs only
 * in the time of an approval or of the request for one, which moves with the journal's clock.
 */
function isSameOrMoved(before: Action, row: Action): boolean {
  if (JSON.stringify(row) === JSON.stringify(before)) return true;
  const [was, is] = [before, row].map(({ approvedAt, createdAt, ...rest }) => [
    row.state === "awaiting" ? (createdAt ?? 0) : (approvedAt ?? 0),
    JSON.stringify(rest),
  ]);
  return (row.state === "awaiting" || row.state === "approved") && is![1] === was![1] && is![0]! > was![0]!;
}

/** Rows that were committed to the store: the state that the next process would load. */
export class RecordedState {
  /** Writes through to the store. */
  readonly journal: Journal;
  readonly actions = new Map<string, Action>();
  readonly episodes = new Map<string, Episode>();
  readonly facts = new Map<string, string>();
  /** The facts that the current process loaded. */
  factsAtStart: ReadonlyMap<string, string> = new Map();
  /** Actions being sent, or sent and not yet verified. Without dry runs. */
  readonly inFlight = new Set<string>();
  /** Open episodes. Without dry runs. */
  readonly open = new Set<string>();
  /** Actions that an operator approved. */
  readonly approved = new Set<string>();
  /** Episodes that were given up because too many attempts at a step were answered with 429. */
  readonly givenUp = new Set<string>();
  /** Number of actions that ended in the current process, by outcome. Without dry runs. */
  readonly endedActions = new Map<string, number>();
  /** Number of recorded decisions with each hold reason. */
  readonly reasons = new Map<string, number>();
  readonly #hooks: CommitHooks;
  readonly #holds = new Map<string, NodeHold>();
  /** Timers that fire, by policy and node. */
  readonly #firing = new Set<string>();
  /** Timers that started firing in the current commit. */
  #firings: { policy: string; node: string }[] = [];
  #hasFailedCommit = false;

  /** Creates the recorded state of an empty store. */
  constructor(store: StateStore, hooks: CommitHooks) {
    this.#hooks = hooks;
    this.journal = { ...store.journal, commit: (changes) => this.#commit(store, changes) };
  }

  /** Resets what is recorded per process. */
  startProcess(): void {
    this.endedActions.clear();
    this.factsAtStart = new Map(this.facts);
  }

  holdsOf(node: string): readonly NodeHold[] {
    return [...this.#holds.values()].filter((hold) => hold.node === node);
  }

  async #commit(store: StateStore, changes: readonly JournalChange[]): Promise<void> {
    const hadFailedCommit = this.#hasFailedCommit;
    this.#hasFailedCommit = true;
    this.#hooks.before(changes);
    await store.journal.commit(changes);
    this.#firings = [];
    for (const change of changes) this.#apply(change);
    // After a failed commit the changes arrive late, so the time of a firing is unknown.
    if (this.#firings.length > 0 && !hadFailedCommit) this.#hooks.onFirings(this.#firings);
    this.#hasFailedCommit = false;
    this.#hooks.after(changes);
    await this.#hooks.finish();
  }

  #applyAction(row: Action): void {
    const before = this.actions.get(row.id);
    if (before === undefined && !row.dryRun && SENT_STATES.has(row.state)) {
      this.#hooks.violation("invalid transition", `${row.id} is new and already ${row.state}`);
    }
    const isAllowed =
      before === undefined || NEXT_STATES[before.state].includes(row.state) || isSameOrMoved(before, row);
    if (!isAllowed && !row.dryRun)
      this.#hooks.violation("invalid transition", `${row.id} went from ${before.state} to ${row.state}`);
    if (row.state === "ended" && before?.state !== "ended" && !row.dryRun && row.outcome !== null) {
      this.endedActions.set(row.outcome, (this.endedActions.get(row.outcome) ?? 0) + 1);
    }
    this.actions.set(row.id, row);
    if (row.state === "approved") this.approved.add(row.id);
    if (!row.dryRun && IN_FLIGHT_STATES.has(row.state)) this.inFlight.add(row.id);
    else this.inFlight.delete(row.id);
  }

  #applyEpisode(row: Episode): void {
    const before = this.episodes.get(row.id);
    // A closed episode may still be marked as replaced when another node takes over the ID, or get the `created_at` with
    // which the service has registered the node again after our reboot.
    const isReassigned =
      row.replaced === true || isDeepStrictEqual({ ...before, nodeCreatedAt: row.nodeCreatedAt }, row);
    if (before !== undefined && before.closedAt !== null && !isReassigned) {
      this.#hooks.violation("invalid transition", `${row.id} was closed (${before.state}) and is now ${row.state}`);
    }
    this.episodes.set(row.id, row);
    if ((row.limited ?? 0) >= RATE_LIMITED_ATTEMPTS_MAX) this.givenUp.add(row.id);
    if (row.closedAt === null && !row.dryRun) this.open.add(row.id);
    else this.open.delete(row.id);
  }

  #apply(change: JournalChange): void {
    switch (change.kind) {
      case "action":
        this.#applyAction(change.row);
        return;
      case "episode":
        this.#applyEpisode(change.row);
        return;
      case "timer": {
        const { policy, node, state } = change.row;
        const key = `${policy} ${node}`;
        if (state === "firing" && !this.#firing.has(key)) {
          this.#firing.add(key);
          this.#firings.push({ policy, node });
        } else if (state === "pending") this.#firing.delete(key);
        // A lapsed timer has fired already and is not counted again.
        return;
      }
      case "timer_gone":
        return void this.#firing.delete(`${change.policy} ${change.node}`);
      case "hold":
        return void this.#holds.set(`${change.row.node} ${change.row.policy}`, change.row);
      case "hold_gone":
        return void this.#holds.delete(`${change.node} ${change.policy}`);
      case "fact":
        return void (change.value === null ? this.facts.delete(change.key) : this.facts.set(change.key, change.value));
      case "decision":
        for (const { reason } of change.row.blockers) this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
        return;
      case "command":
        return;
      default:
        change satisfies never;
    }
  }
}
