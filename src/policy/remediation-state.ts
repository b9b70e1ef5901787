import type { NodeId } from "../model/node.ts";
import type { Action, Episode, NodeHold } from "../model/remediation/episode.ts";
import { formatId, type JournalChange, type JournalContents } from "../model/remediation/journal.ts";
import type { EpochMs } from "../model/time.ts";
import { INACTIVE, restoreTimer, type Timer } from "./timers/timer.ts";

/**
 * What the journal holds, in memory, as decisions read it. Every change is written to the journal first and applied
 * here after; timers move here at once, for what they lost in a crash they only count again.
 */
export interface RemediationRecords {
  timer(policy: string, node: NodeId): Timer;
  setTimer(policy: string, node: NodeId, timer: Timer): void;
  /** Timers of a policy that are not inactive. */
  timersOf(policy: string): ReadonlyMap<NodeId, Timer>;
  /** Names of the policies that have timers. */
  policiesWithTimers(): readonly string[];
  /**
   * `created_at` of nodes with timers as the journal had it at the start. An entry is removed once it was compared with what
   * the service says.
   */
  readonly loadedCreatedAt: Map<NodeId, EpochMs>;
  /** The open episode that has a node, the real one or the one of dry runs; null: none, or only suspended ones. */
  openEpisode(node: NodeId, dryRun: boolean): Episode | null;
  /** The suspended episode of a node under a policy; null: there is none. */
  suspendedEpisode(policy: string, node: NodeId, dryRun: boolean): Episode | null;
  /** Open episodes of a node, the suspended ones too. */
  openEpisodesOf(node: NodeId, dryRun: boolean): readonly Episode[];
  /** All open episodes, the suspended ones too. */
  openEpisodes(): readonly Episode[];
  episode(id: string): Episode | null;
  /** Closed episodes of a node, oldest first, without those of an earlier node with the same id. */
  closedEpisodesOf(node: NodeId, dryRun: boolean): readonly Episode[];
  /** All closed episodes that are remembered, oldest first. */
  closedEpisodes(): Iterable<Episode>;
  action(id: string): Action | null;
  actions(): Iterable<Action>;
  /** Actions of an episode, oldest first. */
  actionsOf(episode: string): readonly Action[];
  holdsOn(node: NodeId): readonly NodeHold[];
  allHolds(): readonly NodeHold[];
  fact(key: string): string | null;
  /** Returns a new identifier. Unused numbers are skipped. */
  nextId(kind: "ep" | "act"): string;
  apply(changes: readonly JournalChange[]): void;
  /** Forgets closed episodes, actions that are over and holds that ended, from before. */
  prune(before: EpochMs): void;
}

/** Action states in which there is something left to do or to see. */
const UNFINISHED_STATES: ReadonlySet<Action["state"]> = new Set([
  "awaiting",
  "approved",
  "intended",
  "posting",
  "sent",
]);

/** Whether an action is not over yet. */
export const isUnfinished = ({ state }: Action): boolean => UNFINISHED_STATES.has(state);

/** Creates the records from the contents of a journal. */
export function createRemediationRecords(contents: JournalContents): RemediationRecords {
  const timers = new Map<string, Map<NodeId, Timer>>();
  const activeEpisodes = [new Map<NodeId, Episode>(), new Map<NodeId, Episode>()] as const;
  const suspendedEpisodes = new Map<NodeId, readonly Episode[]>();
  const openIds = new Set<string>();
  const episodes = new Map<string, Episode>();
  const closedEpisodes = new Map<NodeId, Episode[]>();
  const actions = new Map<string, Action>();
  const actionIdsByEpisode = new Map<string, Set<string>>();
  const holds = new Map<NodeId, NodeHold[]>();
  const facts = new Map(contents.facts);
  let lastNumber = contents.lastNumber;
  const loadedCreatedAt = new Map(
    contents.timers.flatMap(({ node, nodeCreatedAt }) => (nodeCreatedAt === undefined ? [] : [[node, nodeCreatedAt]])),
  );

  const activeEpisodesOf = (dryRun: boolean) => activeEpisodes[dryRun ? 1 : 0];

  function setTimer(policy: string, node: NodeId, timer: Timer): void {
    const known = timers.get(policy);
    if (timer.state !== "inactive") {
      if (known === undefined) timers.set(policy, new Map([[node, timer]]));
      else known.set(node, timer);
    } else if (known?.delete(node) === true && known.size === 0) timers.delete(policy);
  }

  function setEpisode(episode: Episode): void {
    const { id, node, state } = episode;
    const isOpen = episode.closedAt === null;
    setActive(episode, isOpen && state !== "suspended");
    setSuspended(episode, isOpen && state === "suspended");
    if (isOpen) {
      openIds.add(id);
      episodes.set(id, episode);
      return;
    }
    // Closed episodes are kept in the order in which they closed.
    if (openIds.delete(id)) episodes.delete(id);
    episodes.set(id, episode);
    const list = closedEpisodes.get(node) ?? [];
    const index = list.findIndex((each) => each.id === id);
    closedEpisodes.set(node, index < 0 ? [...list, episode] : list.with(index, episode));
  }

  function setActive(episode: Episode, holds: boolean): void {
    const holding = activeEpisodesOf(episode.shadow);
    if (holds) holding.set(episode.node, episode);
    else if (holding.get(episode.node)?.id === episode.id) holding.delete(episode.node);
  }

  function setSuspended(episode: Episode, isSuspended: boolean): void {
    const { id, node } = episode;
    const others = (suspendedEpisodes.get(node) ?? []).filter((each) => each.id !== id);
    const left = isSuspended ? [...others, episode] : others;
    if (left.length > 0) suspendedEpisodes.set(node, left);
    else suspendedEpisodes.delete(node);
  }

  function suspendedOf(node: NodeId, dryRun: boolean): readonly Episode[] {
    return (suspendedEpisodes.get(node) ?? []).filter((episode) => episode.shadow === dryRun);
  }

  function openEpisodesOf(node: NodeId, dryRun: boolean): readonly Episode[] {
    const activeEpisode = activeEpisodesOf(dryRun).get(node);
    return [...(activeEpisode === undefined ? [] : [activeEpisode]), ...suspendedOf(node, dryRun)];
  }

  function setAction(action: Action): void {
    actions.set(action.id, action);
    const ids = actionIdsByEpisode.get(action.episode) ?? new Set();
    actionIdsByEpisode.set(action.episode, ids.add(action.id));
  }

  function setHold(hold: NodeHold): void {
    const others = (holds.get(hold.node) ?? []).filter(({ policy }) => policy !== hold.policy);
    holds.set(hold.node, [...others, hold]);
  }

  function removeHold(node: NodeId, policy: string | null): void {
    const left = (holds.get(node) ?? []).filter((hold) => hold.policy !== policy);
    if (left.length > 0) holds.set(node, left);
    else holds.delete(node);
  }

  function applyOne(change: JournalChange): void {
    switch (change.kind) {
      case "episode":
        setEpisode(change.row);
        return;
      case "action":
        setAction(change.row);
        return;
      case "hold":
        setHold(change.row);
        return;
      case "hold_gone":
        removeHold(change.node, change.policy);
        return;
      case "fact":
        if (change.value === null) facts.delete(change.key);
        else facts.set(change.key, change.value);
        return;
      case "timer":
      case "timer_gone":
      case "decision":
      case "order":
        return;
      default:
        change satisfies never;
    }
  }

  function prune(before: EpochMs): void {
    for (const [node, list] of closedEpisodes) {
      const kept = list.filter(({ closedAt }) => closedAt! >= before);
      for (const { id } of list) if (!kept.some((each) => each.id === id)) episodes.delete(id);
      if (kept.length === 0) closedEpisodes.delete(node);
      else if (kept.length < list.length) closedEpisodes.set(node, kept);
    }
    for (const action of actions.values()) {
      if (isUnfinished(action) || action.createdAt >= before || episodes.has(action.episode)) continue;
      actions.delete(action.id);
      const ids = actionIdsByEpisode.get(action.episode);
      if (ids?.delete(action.id) === true && ids.size === 0) actionIdsByEpisode.delete(action.episode);
    }
    for (const { node, policy, until } of [...holds.values()].flat()) {
      if (until !== null && until < before) removeHold(node, policy);
    }
  }

  for (const row of contents.timers) setTimer(row.policy, row.node, restoreTimer(row));
  for (const episode of contents.episodes.toSorted((a, b) => (a.closedAt ?? 0) - (b.closedAt ?? 0)))
    setEpisode(episode);
  for (const action of contents.actions.toSorted((a, b) => idNumber(a.id) - idNumber(b.id))) setAction(action);
  for (const hold of contents.holds) setHold(hold);

  return {
    timer: (policy, node) => timers.get(policy)?.get(node) ?? INACTIVE,
    setTimer,
    timersOf: (policy) => timers.get(policy) ?? NO_TIMERS,
    policiesWithTimers: () => [...timers.keys()],
    loadedCreatedAt,
    openEpisode: (node, dryRun) => activeEpisodesOf(dryRun).get(node) ?? null,
    suspendedEpisode: (policy, node, dryRun) =>
      suspendedOf(node, dryRun).findLast((each) => each.policy === policy) ?? null,
    openEpisodesOf,
    openEpisodes: () => [...openIds].map((id) => episodes.get(id)!),
    episode: (id) => episodes.get(id) ?? null,
    closedEpisodesOf: (node, dryRun) =>
      (closedEpisodes.get(node) ?? []).filter((episode) => episode.shadow === dryRun && episode.replaced !== true),
    *closedEpisodes() {
      for (const episode of episodes.values()) if (episode.closedAt !== null) yield episode;
    },
    action: (id) => actions.get(id) ?? null,
    actions: () => actions.values(),
    actionsOf: (episode) => [...(actionIdsByEpisode.get(episode) ?? [])].map((id) => actions.get(id)!),
    holdsOn: (node) => holds.get(node) ?? [],
    allHolds: () => [...holds.values()].flat(),
    fact: (key) => facts.get(key) ?? null,
    nextId: (kind) => {
      lastNumber++;
      return formatId(kind, lastNumber);
    },
    apply(changes) {
      for (const change of changes) applyOne(change);
    },
    prune,
  };
}

const NO_TIMERS: ReadonlyMap<NodeId, Timer> = new Map();

const idNumber = (id: string): number => Number(id.slice(id.indexOf("-") + 1));
