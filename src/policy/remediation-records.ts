import type { NodeId } from "../model/node.ts";
import { type Action, type Episode, isUnfinished, type NodeHold } from "../model/remediation/episode.ts";
import { formatId, type JournalChange, type JournalContents } from "../model/remediation/journal.ts";
import type { EpochMs } from "../model/time.ts";
import { countsAsAttempt } from "./episodes/episode-states.ts";
import { INACTIVE, restoreTimer, type Timer, toTimerRow } from "./timer.ts";

/** A change to a timer. */
export type TimerChange = Extract<JournalChange, { kind: "timer" | "timer_gone" }>;

const NO_TIMERS: ReadonlyMap<NodeId, Timer> = new Map();

/**
 * The content of the journal in memory, which decisions read. A change is first written to the journal and then applied
 * here. Timers are the exception: they change here immediately, because after a crash their lost time is just counted
 * again.
 */
export class RemediationRecords {
  /**
   * The `created_at` of nodes with timers that the journal had at the start. An entry is removed once it has been
   * compared with the value that the service returns.
   */
  readonly loadedCreatedAt = new Map<NodeId, EpochMs>();
  readonly #timers = new Map<string, Map<NodeId, Timer>>();
  readonly #openEpisodes = new Map<string, Episode>();
  /** Closed episodes that count as attempts, in the order in which they closed. Others limit nothing. */
  readonly #closedEpisodes = new Map<string, Episode>();
  /** Open and closed episodes, ordered by their last change; for closed ones, that is when they closed. */
  readonly #episodesByNode = new Map<NodeId, readonly Episode[]>();
  readonly #actions = new Map<string, Action>();
  readonly #actionsByEpisode = new Map<string, Map<string, Action>>();
  readonly #holds = new Map<NodeId, readonly NodeHold[]>();
  readonly #facts: Map<string, string>;
  #timersRevision = 0;
  #lastNumber: number;

  constructor({ timers, episodes, actions, holds, facts, lastNumber }: JournalContents) {
    this.#facts = new Map(facts);
    this.#lastNumber = lastNumber;
    for (const row of timers) {
      this.setTimer(row.policy, row.node, restoreTimer(row));
      if (row.nodeCreatedAt !== undefined) this.loadedCreatedAt.set(row.node, row.nodeCreatedAt);
    }
    for (const episode of episodes.toSorted((a, b) => (a.closedAt ?? 0) - (b.closedAt ?? 0))) this.#setEpisode(episode);
    for (const action of actions.toSorted((a, b) => idNumber(a.id) - idNumber(b.id))) this.#setAction(action);
    for (const hold of holds) this.#setHold(hold);
  }

  timer(policy: string, node: NodeId): Timer {
    return this.#timers.get(policy)?.get(node) ?? INACTIVE;
  }

  /**
   * Sets a timer and returns the change to journal. `createdAt` is the `created_at` of the node that was evaluated,
   * because a newer snapshot may already show another node with the id. By default it is that of the journal.
   */
  setTimer(policy: string, node: NodeId, timer: Timer, createdAt = this.loadedCreatedAt.get(node)): TimerChange {
    this.#timersRevision++;
    const known = this.#timers.get(policy);
    if (timer.state !== "inactive") {
      if (known === undefined) this.#timers.set(policy, new Map([[node, timer]]));
      else known.set(node, timer);
    } else if (known?.delete(node) === true && known.size === 0) this.#timers.delete(policy);
    const row = toTimerRow(policy, node, timer, createdAt);
    return row === null ? { kind: "timer_gone", policy, node } : { kind: "timer", row };
  }

  /** Timers of a policy that are not inactive. */
  timersOf(policy: string): ReadonlyMap<NodeId, Timer> {
    return this.#timers.get(policy) ?? NO_TIMERS;
  }

  /** Nodes on which the timer of a policy is firing. */
  firingNodes(policy: string): readonly NodeId[] {
    return [...this.timersOf(policy)].flatMap(([node, { state }]) => (state === "firing" ? [node] : []));
  }

  /** Returns a number that grows whenever a timer is set. */
  timersRevision(): number {
    return this.#timersRevision;
  }

  policiesWithTimers(): readonly string[] {
    return [...this.#timers.keys()];
  }

  /** The open episode of a node, real or of a dry run, that is not suspended, or null if there is none. */
  openEpisode(node: NodeId, dryRun: boolean): Episode | null {
    const isMatch = (episode: Episode) =>
      episode.closedAt === null && episode.dryRun === dryRun && episode.state !== "suspended";
    // Called for each node of a mass event, so it copies no list.
    return this.#episodesOf(node).findLast(isMatch) ?? null;
  }

  /**
   * The open episode of a node under a policy, which may be suspended, or null if there is none. If `dryRun` is absent, it
   * may be a real one or that of a dry run.
   */
  episodeUnder(policy: string, node: NodeId, dryRun?: boolean): Episode | null {
    return this.openEpisodesOf(node, dryRun).findLast((episode) => episode.policy === policy) ?? null;
  }

  /** The suspended episode of a node under a policy, or null if there is none. */
  suspendedEpisode(policy: string, node: NodeId, dryRun: boolean): Episode | null {
    const episode = this.episodeUnder(policy, node, dryRun);
    return episode?.state === "suspended" ? episode : null;
  }

  /**
   * Open and closed episodes of a node, without closed ones of an earlier node with the same id. If `dryRun` is absent,
   * they are real ones and those of dry runs.
   */
  episodesOf(node: NodeId, dryRun?: boolean): readonly Episode[] {
    return this.#episodesOf(node, dryRun).filter(({ closedAt, replaced }) => closedAt === null || replaced !== true);
  }

  /**
   * Open episodes of a node, including suspended ones. If `dryRun` is absent, they are real ones and those of dry runs.
   */
  openEpisodesOf(node: NodeId, dryRun?: boolean): readonly Episode[] {
    return this.#episodesOf(node, dryRun).filter(({ closedAt }) => closedAt === null);
  }

  /** All open episodes, including suspended ones. */
  openEpisodes(): readonly Episode[] {
    return [...this.#openEpisodes.values()];
  }

  episode(id: string): Episode | null {
    return this.#openEpisodes.get(id) ?? this.#closedEpisodes.get(id) ?? null;
  }

  /** Attempts at a node that closed, oldest first, without those of an earlier node with the same id. */
  closedEpisodesOf(node: NodeId, dryRun: boolean): readonly Episode[] {
    return this.closedEpisodesOfId(node, dryRun).filter(({ replaced }) => replaced !== true);
  }

  /** The same, with those of earlier nodes with the same id. */
  closedEpisodesOfId(id: NodeId, dryRun: boolean): readonly Episode[] {
    return this.#episodesOf(id, dryRun).filter(({ closedAt }) => closedAt !== null);
  }

  /** All attempts that closed and are in memory, oldest first. */
  closedEpisodes(): Iterable<Episode> {
    return this.#closedEpisodes.values();
  }

  action(id: string): Action | null {
    return this.#actions.get(id) ?? null;
  }

  actions(): Iterable<Action> {
    return this.#actions.values();
  }

  /** Actions of an episode, oldest first. */
  actionsOf(episode: string): readonly Action[] {
    return [...(this.#actionsByEpisode.get(episode)?.values() ?? [])];
  }

  holdsOn(node: NodeId): readonly NodeHold[] {
    return this.#holds.get(node) ?? [];
  }

  /** The hold of a node for one policy or, with null, for every policy; null if there is none. */
  hold(node: NodeId, policy: string | null): NodeHold | null {
    return this.holdsOn(node).find((hold) => hold.policy === policy) ?? null;
  }

  allHolds(): readonly NodeHold[] {
    return [...this.#holds.values()].flat();
  }

  fact(key: string): string | null {
    return this.#facts.get(key) ?? null;
  }

  /** Returns the value of a fact that is stored as JSON, or null if there is none. */
  jsonFact<T>(key: string): T | null {
    return JSON.parse(this.fact(key) ?? "null") as T | null;
  }

  /** Returns a new identifier. Numbers may be skipped. */
  nextId(kind: "ep" | "act"): string {
    this.#lastNumber++;
    return formatId(kind, this.#lastNumber);
  }

  apply(changes: readonly JournalChange[]): void {
    for (const change of changes) this.#applyChange(change);
  }

  /** Removes closed episodes, finished actions and expired holds that are older than `before`. */
  prune(before: EpochMs): void {
    for (const { id, node, closedAt } of this.#closedEpisodes.values()) {
      if (closedAt! >= before) continue;
      this.#closedEpisodes.delete(id);
      setList(this.#episodesByNode, node, this.#otherEpisodes(node, id));
    }
    for (const action of this.#actions.values()) {
      if (isUnfinished(action) || action.createdAt >= before || this.episode(action.episode) !== null) continue;
      this.#actions.delete(action.id);
      const siblings = this.#actionsByEpisode.get(action.episode);
      if (siblings?.delete(action.id) === true && siblings.size === 0) this.#actionsByEpisode.delete(action.episode);
    }
    for (const { node, policy, until } of this.allHolds()) {
      if (until !== null && until < before) this.#removeHold(node, policy);
    }
  }

  /**
   * Returns the changes that write the facts, holds and actions of these changes as they are now. An action that is not
   * known is withdrawn.
   */
  currentRows(changes: readonly JournalChange[]): JournalChange[] {
    return changes.flatMap((change): JournalChange[] => {
      if (change.kind === "fact") return [{ ...change, value: this.fact(change.key) }];
      if (change.kind === "action") {
        const { id, createdAt: endedAt } = change.row;
        const withdrawn = { state: "withdrawn", endedAt, detail: "the journal could not be written" } as const;
        return [{ kind: "action", row: this.action(id) ?? { ...change.row, ...withdrawn } }];
      }
      if (change.kind !== "hold" && change.kind !== "hold_gone") return [];
      const { node, policy } = change.kind === "hold" ? change.row : change;
      const row = this.hold(node, policy);
      return [row === null ? { kind: "hold_gone", node, policy } : { kind: "hold", row }];
    });
  }

  #applyChange(change: JournalChange): void {
    switch (change.kind) {
      case "episode":
        this.#setEpisode(change.row);
        break;
      case "action":
        this.#setAction(change.row);
        break;
      case "hold":
        this.#setHold(change.row);
        break;
      case "hold_gone":
        this.#removeHold(change.node, change.policy);
        break;
      case "fact":
        if (change.value === null) this.#facts.delete(change.key);
        else this.#facts.set(change.key, change.value);
        break;
      case "timer":
      case "timer_gone":
      case "decision":
      case "command":
        break;
      default:
        change satisfies never;
    }
  }

  #setEpisode(episode: Episode): void {
    const { id, node, closedAt } = episode;
    const isKept = closedAt === null || countsAsAttempt(episode);
    if (closedAt !== null) this.#openEpisodes.delete(id);
    if (isKept) (closedAt === null ? this.#openEpisodes : this.#closedEpisodes).set(id, episode);
    setList(this.#episodesByNode, node, [...this.#otherEpisodes(node, id), ...(isKept ? [episode] : [])]);
  }

  #episodesOf(node: NodeId, dryRun?: boolean): readonly Episode[] {
    const episodes = this.#episodesByNode.get(node) ?? [];
    return dryRun === undefined ? episodes : episodes.filter((episode) => episode.dryRun === dryRun);
  }

  #otherEpisodes(node: NodeId, id: string): readonly Episode[] {
    return this.#episodesOf(node).filter((episode) => episode.id !== id);
  }

  #setAction(action: Action): void {
    this.#actions.set(action.id, action);
    const siblings = this.#actionsByEpisode.get(action.episode) ?? new Map<string, Action>();
    this.#actionsByEpisode.set(action.episode, siblings.set(action.id, action));
  }

  #setHold(hold: NodeHold): void {
    const others = this.holdsOn(hold.node).filter(({ policy }) => policy !== hold.policy);
    this.#holds.set(hold.node, [...others, hold]);
  }

  #removeHold(node: NodeId, policy: string | null): void {
    const others = this.holdsOn(node).filter((hold) => hold.policy !== policy);
    setList(this.#holds, node, others);
  }
}

/** Sets the list of a node, and removes an empty one. */
function setList<T>(lists: Map<NodeId, readonly T[]>, node: NodeId, list: readonly T[]): void {
  if (list.length > 0) lists.set(node, list);
  else lists.delete(node);
}

const idNumber = (id: string): number => Number(id.slice(id.indexOf("-") + 1));
