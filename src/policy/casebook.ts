import type { Action, Episode, NodeHold } from "../model/episode.ts";
import { type Change, idOf, type JournalContents } from "../model/journal.ts";
import type { NodeId } from "../model/node.ts";
import type { EpochMs } from "../model/time.ts";
import { INACTIVE, restarted, type Timer } from "./timer.ts";

/**
 * What the journal holds, in memory, as decisions read it. Every change is written to the journal first and applied
 * here after; timers move here at once, for what they lost in a crash they only count again.
 */
export interface Casebook {
  timer(policy: string, node: NodeId): Timer;
  setTimer(policy: string, node: NodeId, timer: Timer): void;
  /** Timers of a policy that are not inactive. */
  timersOf(policy: string): ReadonlyMap<NodeId, Timer>;
  /** Names of the policies that have timers. */
  timedPolicies(): readonly string[];
  /**
   * `created_at` of nodes with timers as the journal had it at the start. An entry is removed once it was compared with what
   * the service says.
   */
  readonly loadedCreatedAt: Map<NodeId, EpochMs>;
  /** The open episode that has a node, the real one or the one of dry runs; null: none, or only suspended ones. */
  open(node: NodeId, shadow: boolean): Episode | null;
  /** The suspended episode of a node under a policy; null: there is none. */
  suspended(policy: string, node: NodeId, shadow: boolean): Episode | null;
  /** Open episodes of a node, the suspended ones too. */
  openOf(node: NodeId, shadow: boolean): readonly Episode[];
  /** All open episodes, the suspended ones too. */
  openEpisodes(): readonly Episode[];
  episode(id: string): Episode | null;
  /** Closed episodes of a node, oldest first, but for those of another node that had its id before. */
  past(node: NodeId, shadow: boolean): readonly Episode[];
  /** All closed episodes that are remembered, oldest first. */
  closed(): Iterable<Episode>;
  action(id: string): Action | null;
  actions(): Iterable<Action>;
  /** Actions of an episode, oldest first. */
  actionsOf(episode: string): readonly Action[];
  holds(node: NodeId): readonly NodeHold[];
  allHolds(): readonly NodeHold[];
  fact(key: string): string | null;
  /** A new identifier. A number that is drawn and not used is lost, which harms nobody. */
  nextId(kind: "ep" | "act"): string;
  apply(changes: readonly Change[]): void;
  /** Forgets closed episodes, actions that are over and holds that ended, from before. */
  prune(before: EpochMs): void;
}

/** Action states in which there is something left to do or to see. */
const LIVE: ReadonlySet<Action["state"]> = new Set(["awaiting", "approved", "intended", "posting", "sent"]);

/** Whether an action is not over yet. */
export const isLive = ({ state }: Action): boolean => LIVE.has(state);

/** A casebook of what a journal holds. */
export function createCasebook(contents: JournalContents): Casebook {
  const timers = new Map<string, Map<NodeId, Timer>>();
  const holders = [new Map<NodeId, Episode>(), new Map<NodeId, Episode>()] as const;
  const suspended = new Map<NodeId, readonly Episode[]>();
  const openIds = new Set<string>();
  const episodes = new Map<string, Episode>();
  const past = new Map<NodeId, Episode[]>();
  const actions = new Map<string, Action>();
  const byEpisode = new Map<string, Set<string>>();
  const holds = new Map<NodeId, NodeHold[]>();
  const facts = new Map(contents.facts);
  let lastNumber = contents.lastNumber;
  const loadedCreatedAt = new Map(
    contents.timers.flatMap(({ node, nodeCreatedAt }) => (nodeCreatedAt === undefined ? [] : [[node, nodeCreatedAt]])),
  );

  const holdersOf = (shadow: boolean) => holders[shadow ? 1 : 0];

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
    setHolder(episode, isOpen && state !== "suspended");
    setSuspended(episode, isOpen && state === "suspended");
    if (isOpen) {
      openIds.add(id);
      episodes.set(id, episode);
      return;
    }
    // They are told in the order in which they closed.
    if (openIds.delete(id)) episodes.delete(id);
    episodes.set(id, episode);
    const list = past.get(node) ?? [];
    const index = list.findIndex((each) => each.id === id);
    past.set(node, index < 0 ? [...list, episode] : list.with(index, episode));
  }

  function setHolder(episode: Episode, holds: boolean): void {
    const holding = holdersOf(episode.shadow);
    if (holds) holding.set(episode.node, episode);
    else if (holding.get(episode.node)?.id === episode.id) holding.delete(episode.node);
  }

  function setSuspended(episode: Episode, isSuspended: boolean): void {
    const { id, node } = episode;
    const others = (suspended.get(node) ?? []).filter((each) => each.id !== id);
    const left = isSuspended ? [...others, episode] : others;
    if (left.length > 0) suspended.set(node, left);
    else suspended.delete(node);
  }

  function suspendedOf(node: NodeId, shadow: boolean): readonly Episode[] {
    return (suspended.get(node) ?? []).filter((episode) => episode.shadow === shadow);
  }

  function openOf(node: NodeId, shadow: boolean): readonly Episode[] {
    const holder = holdersOf(shadow).get(node);
    return [...(holder === undefined ? [] : [holder]), ...suspendedOf(node, shadow)];
  }

  function setAction(action: Action): void {
    actions.set(action.id, action);
    const ids = byEpisode.get(action.episode) ?? new Set();
    byEpisode.set(action.episode, ids.add(action.id));
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

  function applyOne(change: Change): void {
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
    for (const [node, list] of past) {
      const kept = list.filter(({ closedAt }) => closedAt! >= before);
      for (const { id } of list) if (!kept.some((each) => each.id === id)) episodes.delete(id);
      if (kept.length === 0) past.delete(node);
      else if (kept.length < list.length) past.set(node, kept);
    }
    for (const action of actions.values()) {
      if (isLive(action) || action.createdAt >= before || episodes.has(action.episode)) continue;
      actions.delete(action.id);
      const ids = byEpisode.get(action.episode);
      if (ids?.delete(action.id) === true && ids.size === 0) byEpisode.delete(action.episode);
    }
    for (const { node, policy, until } of [...holds.values()].flat()) {
      if (until !== null && until < before) removeHold(node, policy);
    }
  }

  for (const row of contents.timers) setTimer(row.policy, row.node, restarted(row));
  for (const episode of contents.episodes.toSorted((a, b) => (a.closedAt ?? 0) - (b.closedAt ?? 0)))
    setEpisode(episode);
  for (const action of contents.actions.toSorted((a, b) => numberOf(a.id) - numberOf(b.id))) setAction(action);
  for (const hold of contents.holds) setHold(hold);

  return {
    timer: (policy, node) => timers.get(policy)?.get(node) ?? INACTIVE,
    setTimer,
    timersOf: (policy) => timers.get(policy) ?? NO_TIMERS,
    timedPolicies: () => [...timers.keys()],
    loadedCreatedAt,
    open: (node, shadow) => holdersOf(shadow).get(node) ?? null,
    suspended: (policy, node, shadow) => suspendedOf(node, shadow).findLast((each) => each.policy === policy) ?? null,
    openOf,
    openEpisodes: () => [...openIds].map((id) => episodes.get(id)!),
    episode: (id) => episodes.get(id) ?? null,
    past: (node, shadow) =>
      (past.get(node) ?? []).filter((episode) => episode.shadow === shadow && episode.replaced !== true),
    *closed() {
      for (const episode of episodes.values()) if (episode.closedAt !== null) yield episode;
    },
    action: (id) => actions.get(id) ?? null,
    actions: () => actions.values(),
    actionsOf: (episode) => [...(byEpisode.get(episode) ?? [])].map((id) => actions.get(id)!),
    holds: (node) => holds.get(node) ?? [],
    allHolds: () => [...holds.values()].flat(),
    fact: (key) => facts.get(key) ?? null,
    nextId: (kind) => {
      lastNumber++;
      return idOf(kind, lastNumber);
    },
    apply(changes) {
      for (const change of changes) applyOne(change);
    },
    prune,
  };
}

const NO_TIMERS: ReadonlyMap<NodeId, Timer> = new Map();

const numberOf = (id: string): number => Number(id.slice(id.indexOf("-") + 1));
