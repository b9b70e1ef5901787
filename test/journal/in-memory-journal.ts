import type { Action, Decision, Episode, NodeHold, TimerRow } from "../../src/model/remediation/episode.ts";
import type { Journal, JournalChange, JournalContents, JournalQuery } from "../../src/model/remediation/journal.ts";
import type { OperatorCommandRow } from "../../src/model/remediation/operator-command.ts";
import { countsAsAttempt } from "../../src/policy/episodes/episode-states.ts";

/** Returns whether an action has come to its end. */
export const isFinished = ({ state }: Action): boolean => ["ended", "withdrawn", "rejected", "lapsed"].includes(state);

/** The number in an id. */
export const numberOf = (id: string): number => Number(id.split("-")[1]);

/** A journal whose methods return values instead of promises. */
type InMemoryJournal = {
  readonly [Method in Exclude<keyof Journal, "prune">]: (
    ...args: Parameters<Journal[Method]>
  ) => Awaited<ReturnType<Journal[Method]>>;
};

/** A journal in its simplest form: maps and lists that are searched completely. */
export function createInMemoryJournal(): InMemoryJournal {
  const timers = new Map<string, TimerRow>();
  const episodes = new Map<string, Episode>();
  const actions = new Map<string, Action>();
  const holds = new Map<string, NodeHold>();
  const facts = new Map<string, string>();
  const decisions: Decision[] = [];
  const operatorCommands: OperatorCommandRow[] = [];

  function apply(change: JournalChange): void {
    if (change.kind === "timer") timers.set(key(change.row), change.row);
    if (change.kind === "timer_gone") timers.delete(key(change));
    if (change.kind === "episode") episodes.set(change.row.id, change.row);
    if (change.kind === "action") actions.set(change.row.id, change.row);
    if (change.kind === "decision") decisions.push(change.row);
    if (change.kind === "command") operatorCommands.push(change.row);
    if (change.kind === "hold") holds.set(key(change.row), change.row);
    if (change.kind === "hold_gone") holds.delete(key(change));
    if (change.kind === "fact" && change.value !== null) facts.set(change.key, change.value);
    if (change.kind === "fact" && change.value === null) facts.delete(change.key);
  }

  function load(closedSince: number): JournalContents {
    const isOpen = (id: string) => episodes.get(id)?.closedAt === null;
    return {
      timers: [...timers.values()],
      episodes: [...episodes.values()].filter(
        (episode) => episode.closedAt === null || (episode.closedAt >= closedSince && countsAsAttempt(episode)),
      ),
      actions: [...actions.values()].filter(
        (action) => !isFinished(action) || action.createdAt >= closedSince || isOpen(action.episode),
      ),
      holds: [...holds.values()],
      facts,
      lastNumber: Math.max(0, ...[...episodes.keys(), ...actions.keys()].map(numberOf)),
    };
  }

  return {
    load,
    facts: () => facts,
    commit: (changes) => changes.forEach(apply),
    decisions: (query) => selectRows(decisions, query, ({ at }) => at),
    operatorCommands: ({ policy: _, ...query }) => selectRows(operatorCommands, query, ({ at }) => at),
    actions: (query) => selectRows(byNumber(actions.values()), query, ({ createdAt }) => createdAt),
    episodes: (query) => selectRows(byNumber(episodes.values()), query, ({ openedAt }) => openedAt),
  };
}

/** Contents in one order, so that two of them can be compared. */
export const inOrder = (contents: JournalContents): JournalContents => ({
  ...contents,
  timers: contents.timers.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)),
  episodes: byNumber(contents.episodes),
  actions: byNumber(contents.actions),
  holds: contents.holds.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)),
});

const key = ({ policy, node }: { policy: string | null; node: string }) => JSON.stringify([policy, node]);

const byNumber = <T extends { id: string }>(rows: Iterable<T>): T[] =>
  [...rows].sort((a, b) => numberOf(a.id) - numberOf(b.id));

/** Rows in the order in which they came; of one instant, the later one is the newer. */
function selectRows<T extends { readonly node: string | null; readonly policy?: string }>(
  rows: readonly T[],
  { node, policy, until, limit }: JournalQuery,
  at: (row: T) => number,
): T[] {
  return rows
    .filter((row) => node === undefined || row.node === node)
    .filter((row) => policy === undefined || row.policy === policy)
    .filter((row) => until === undefined || at(row) <= until)
    .toReversed()
    .sort((a, b) => at(b) - at(a))
    .slice(0, Math.max(0, limit));
}
