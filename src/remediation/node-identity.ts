import type { Change } from "../model/remediation/journal.ts";
import type { NodeId } from "../model/node.ts";
import type { Fleet } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import { withdrawn } from "../policy/episodes/episode.ts";
import { endActions, settle } from "./execution/episode-transitions.ts";
import { slotOf, type Ward } from "./context.ts";

/**
 * Tells nodes apart that have had the same id: `created_at` (spec, section 2.1) is another one. It is in the detail alone, so
 * it is known from the first read of a detail on, and before each action.
 */
export interface Identities {
  /** Nodes whose id another node has had since the call before, or since what the journal holds of them. */
  replaced(): ReadonlySet<NodeId>;
  /** The same of one node, and nothing is remembered. */
  isReplaced(node: NodeId): boolean;
}

/** When the node was created, on the service's clock; null: its detail was not read yet, or doesn't say. */
export function createdAtOf(ward: Ward, node: NodeId): EpochMs | null {
  const slot = slotOf(ward, node);
  const at = slot === null ? Number.NaN : ward.view!.snapshot.fleet.createdAtMs[slot]!;
  return Number.isNaN(at) ? null : at;
}

/** The same, or else as the journal had it for the timers of the node at the start; null: not known. */
export const knownCreatedAt = (ward: Ward, node: NodeId): EpochMs | null =>
  createdAtOf(ward, node) ?? ward.books.casebook.loadedCreatedAt.get(node) ?? null;

/** Creates the identities of the nodes that the ward sees. */
export function createIdentities(ward: Ward): Identities {
  const { casebook } = ward.books;
  let before: Fleet | null = null;

  const differs = (known: EpochMs | undefined, node: NodeId): boolean => {
    const now = createdAtOf(ward, node);
    return known !== undefined && now !== null && known !== now;
  };

  /** Notes of whom an open episode is, as soon as that is known. Of a suspended one it may be another node by now. */
  function identify(): void {
    const changes = casebook.openEpisodes().flatMap((row) => {
      const nodeCreatedAt = row.state === "suspended" ? null : createdAtOf(ward, row.node);
      if (row.nodeCreatedAt !== undefined || nodeCreatedAt === null) return [];
      return [{ kind: "episode", row: { ...row, nodeCreatedAt } } as const];
    });
    if (changes.length > 0) ward.books.record(changes);
  }

  return {
    replaced() {
      const { fleet } = ward.view!.snapshot;
      const nodes = new Set<NodeId>();
      for (let slot = 0; before !== null && slot < Math.min(fleet.slots, before.slots); slot++) {
        if (isChanged(before, fleet, slot)) nodes.add(fleet.ids[slot]!);
      }
      before = fleet;
      for (const { node, nodeCreatedAt, replaced } of [...casebook.openEpisodes(), ...casebook.closed()]) {
        if (replaced !== true && differs(nodeCreatedAt, node)) nodes.add(node);
      }
      for (const [node, at] of casebook.loadedCreatedAt) {
        if (createdAtOf(ward, node) === null) continue;
        if (differs(at, node)) nodes.add(node);
        casebook.loadedCreatedAt.delete(node);
      }
      identify();
      return nodes;
    },
    isReplaced(node) {
      const slot = slotOf(ward, node);
      if (slot === null) return false;
      if (before !== null && isChanged(before, ward.view!.snapshot.fleet, slot)) return true;
      if (differs(casebook.loadedCreatedAt.get(node), node)) return true;
      return [false, true].some((shadow) => differs(casebook.open(node, shadow)?.nodeCreatedAt, node));
    },
  };
}

/** Whether a slot has the same id, and another node. What is not a number is not known. */
function isChanged(before: Fleet, now: Fleet, slot: number): boolean {
  const [one, other] = [before.createdAtMs[slot]!, now.createdAtMs[slot]!];
  return one !== other && before.ids[slot] === now.ids[slot] && !Number.isNaN(one) && !Number.isNaN(other);
}

/** Drops what the journal says of a node whose id another node has by now: it says nothing of that one. */
export function disown(ward: Ward, node: NodeId): void {
  const { books } = ward;
  const { casebook } = books;
  for (const episode of casebook.openEpisodes()) {
    if (episode.node !== node) continue;
    const why = "another node has the id: its created_at is another one";
    settle(ward, episode, withdrawn(episode, books.now()), endActions(ward, episode, why));
  }
  const past = [false, true].flatMap((shadow) => casebook.past(node, shadow));
  const dropped = casebook.holds(node).filter(({ kind }) => kind !== "held");
  books.record([
    ...past.map((episode): Change => ({ kind: "episode", row: { ...episode, replaced: true } })),
    ...dropped.map(({ policy }): Change => ({ kind: "hold_gone", node, policy })),
  ]);
  ward.log.warn({ node, episodes: past.length }, "another node has the id; what was known of the old one is dropped");
}
