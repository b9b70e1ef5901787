import type { NodeId } from "../model/node.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { Fleet } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import type { RemediationContext } from "./context.ts";
import { type TransitionDeps, withdraw } from "./execution/episode-transitions.ts";

type IdentityDeps = Pick<RemediationContext, "observed" | "remediationState">;

/**
 * Detects that an id belongs to another node by now: its `created_at` (spec, section 2.1) differs. Only the detail of a node
 * has it, which is read in turn, and before each action.
 */
export interface NodeIdentities {
  /** Returns the ids that belong to another node since the last call, or since the journal was written. */
  findReplaced(): ReadonlySet<NodeId>;
  /** Returns whether that is so for one id. {@link findReplaced} will still return it. */
  isReplaced(node: NodeId): boolean;
}

/** Returns a node's `created_at` from its detail, or else from the journal at the start; null: unknown. */
export const knownCreatedAt = (context: IdentityDeps, node: NodeId): EpochMs | null =>
  context.observed.createdAtOf(node) ?? context.remediationState.records.loadedCreatedAt.get(node) ?? null;

/** Creates a tracker of node identities that has seen no fleet yet. */
export function createNodeIdentities(context: IdentityDeps): NodeIdentities {
  const { records } = context.remediationState;
  let previous: Fleet | null = null;

  const isDifferent = (known: EpochMs | undefined, node: NodeId): boolean => {
    const now = context.observed.createdAtOf(node);
    return known !== undefined && now !== null && known !== now;
  };

  /** Records `created_at` in open episodes once it is known. The id of a suspended one may belong to another node by now. */
  function recordIdentity(): void {
    const changes = records.openEpisodes().flatMap((row) => {
      const nodeCreatedAt = row.state === "suspended" ? null : context.observed.createdAtOf(row.node);
      if (row.nodeCreatedAt !== undefined || nodeCreatedAt === null) return [];
      return [{ kind: "episode", row: { ...row, nodeCreatedAt } } as const];
    });
    if (changes.length > 0) context.remediationState.record(changes);
  }

  return {
    findReplaced() {
      const { fleet } = context.observed;
      const nodes = new Set<NodeId>();
      for (let slot = 0; previous !== null && slot < Math.min(fleet.slots, previous.slots); slot++) {
        if (isChanged(previous, fleet, slot)) nodes.add(fleet.ids[slot]!);
      }
      previous = fleet;
      for (const { node, nodeCreatedAt, replaced } of [...records.openEpisodes(), ...records.closedEpisodes()]) {
        if (replaced !== true && isDifferent(nodeCreatedAt, node)) nodes.add(node);
      }
      for (const [node, at] of records.loadedCreatedAt) {
        if (context.observed.createdAtOf(node) === null) continue;
        if (isDifferent(at, node)) nodes.add(node);
        records.loadedCreatedAt.delete(node);
      }
      recordIdentity();
      return nodes;
    },
    isReplaced(node) {
      const slot = context.observed.slotOf(node);
      if (slot === null) return false;
      if (previous !== null && isChanged(previous, context.observed.fleet, slot)) return true;
      if (isDifferent(records.loadedCreatedAt.get(node), node)) return true;
      return [false, true].some((dryRun) => isDifferent(records.openEpisode(node, dryRun)?.nodeCreatedAt, node));
    },
  };
}

/** Whether a slot has the same id but another node. An unknown `created_at` is NaN, and shows nothing. */
function isChanged(previous: Fleet, current: Fleet, slot: number): boolean {
  const [one, other] = [previous.createdAtMs[slot]!, current.createdAtMs[slot]!];
  return one !== other && previous.ids[slot] === current.ids[slot] && !Number.isNaN(one) && !Number.isNaN(other);
}

/** Drops what the journal holds about the previous node of an id. */
export function forgetReplacedNode(context: TransitionDeps, node: NodeId): void {
  const { remediationState } = context;
  const { records } = remediationState;
  for (const episode of records.openEpisodes()) {
    if (episode.node !== node) continue;
    withdraw(context, episode, "the id belongs to another node: its created_at differs");
  }
  const closedEpisodes = [false, true].flatMap((dryRun) => records.closedEpisodesOf(node, dryRun));
  const dropped = records.holdsOn(node).filter(({ kind }) => kind !== "held");
  remediationState.record([
    ...closedEpisodes.map((episode): JournalChange => ({ kind: "episode", row: { ...episode, replaced: true } })),
    ...dropped.map(({ policy }): JournalChange => ({ kind: "hold_gone", node, policy })),
  ]);
  context.log.warn(
    { node, episodes: closedEpisodes.length },
    "the id belongs to another node; the state of the previous one is dropped",
  );
}
