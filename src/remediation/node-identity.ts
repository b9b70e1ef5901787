import type { NodeId } from "../model/node.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { Fleet } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import type { RemediationContext } from "./context.ts";
import type { TransitionDeps } from "./execution/episode-transitions.ts";
import { withdraw } from "./execution/episode-transitions.ts";

type IdentityDeps = Pick<RemediationContext, "observed" | "remediationState">;

/**
 * Detects that another node has an id: its `created_at` (spec, section 2.1) differs. Only the detail has it, so it is known
 * after the first read of a detail, and before each action.
 */
export interface NodeIdentities {
  /** Returns the nodes whose id another node got since the last call, or since the journal was written. */
  findReplaced(): ReadonlySet<NodeId>;
  /** Returns the same for one node, without remembering it. */
  isReplaced(node: NodeId): boolean;
}

/** Returns `created_at` of a node as it was read, or else as the journal had it at the start; null: unknown. */
export const knownCreatedAt = (context: IdentityDeps, node: NodeId): EpochMs | null =>
  context.observed.createdAtOf(node) ?? context.remediationState.records.loadedCreatedAt.get(node) ?? null;

/** Creates a tracker of node identities that has seen no fleet yet. */
export function createNodeIdentities(context: IdentityDeps): NodeIdentities {
  const { records } = context.remediationState;
  let before: Fleet | null = null;

  const isDifferent = (known: EpochMs | undefined, node: NodeId): boolean => {
    const now = context.observed.createdAtOf(node);
    return known !== undefined && now !== null && known !== now;
  };

  /** Records `created_at` in open episodes once it is known. A suspended one may be of another node by now. */
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
      for (let slot = 0; before !== null && slot < Math.min(fleet.slots, before.slots); slot++) {
        if (isChanged(before, fleet, slot)) nodes.add(fleet.ids[slot]!);
      }
      before = fleet;
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
      if (before !== null && isChanged(before, context.observed.fleet, slot)) return true;
      if (isDifferent(records.loadedCreatedAt.get(node), node)) return true;
      return [false, true].some((dryRun) => isDifferent(records.openEpisode(node, dryRun)?.nodeCreatedAt, node));
    },
  };
}

/** Whether a slot has the same id but another node. NaN: unknown. */
function isChanged(before: Fleet, now: Fleet, slot: number): boolean {
  const [one, other] = [before.createdAtMs[slot]!, now.createdAtMs[slot]!];
  return one !== other && before.ids[slot] === now.ids[slot] && !Number.isNaN(one) && !Number.isNaN(other);
}

/** Drops what the journal has about a node whose id another node has by now. */
export function forgetReplacedNode(context: TransitionDeps, node: NodeId): void {
  const { remediationState } = context;
  const { records } = remediationState;
  for (const episode of records.openEpisodes()) {
    if (episode.node !== node) continue;
    withdraw(context, episode, "another node has the id: its created_at is another one");
  }
  const closedEpisodes = [false, true].flatMap((dryRun) => records.closedEpisodesOf(node, dryRun));
  const dropped = records.holdsOn(node).filter(({ kind }) => kind !== "held");
  remediationState.record([
    ...closedEpisodes.map((episode): JournalChange => ({ kind: "episode", row: { ...episode, replaced: true } })),
    ...dropped.map(({ policy }): JournalChange => ({ kind: "hold_gone", node, policy })),
  ]);
  context.log.warn(
    { node, episodes: closedEpisodes.length },
    "another node has the id; what was known of the old one is dropped",
  );
}
