import type { Steps } from "../../base/steps.ts";
import type { NodeId } from "../../model/node.ts";
import type { TimerChange } from "../../policy/remediation-records.ts";

/** Changes to timers that one transaction writes in about two milliseconds. */
const CHANGES_PER_PART = 500;
/** Nodes that are compared for each part to find its bounds, so that hardly any part is twice as large as planned. */
const SAMPLES_PER_PART = 20;
/** Changes that are assigned to parts in a tenth of a millisecond. */
const CHANGES_PER_STEP = 200;

/**
 * Splits changes to timers into parts to be journaled one by one. Each has the nodes of one range of ids, whose rows are
 * next to each other on disk. With nodes in another order each part would write most pages of the table again, and all
 * parts together would take ten times as long. The changes of one timer keep their order.
 */
export function* splitByNode(changes: readonly TimerChange[]): Steps<readonly (readonly TimerChange[])[]> {
  const bounds = boundsOfParts(changes, Math.ceil(changes.length / CHANGES_PER_PART));
  const parts = Array.from({ length: bounds.length + 1 }, (): TimerChange[] => []);
  for (const [index, change] of changes.entries()) {
    parts[countUpTo(bounds, nodeOf(change))]!.push(change);
    if (index % CHANGES_PER_STEP === 0) yield;
  }
  return parts;
}

/** Returns the ids at which all parts but the first begin, in their order. */
function boundsOfParts(changes: readonly TimerChange[], parts: number): readonly NodeId[] {
  if (parts <= 1) return [];
  const samples = Array.from({ length: parts * SAMPLES_PER_PART }, (_, index) =>
    nodeOf(changes[Math.floor((index * changes.length) / (parts * SAMPLES_PER_PART))]!),
  ).sort();
  return Array.from({ length: parts - 1 }, (_, index) => samples[(index + 1) * SAMPLES_PER_PART]!);
}

/** Returns how many of these ordered ids are not after `node`. */
function countUpTo(ids: readonly NodeId[], node: NodeId): number {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ids[middle]! <= node) low = middle + 1;
    else high = middle;
  }
  return low;
}

const nodeOf = (change: TimerChange): NodeId => (change.kind === "timer" ? change.row.node : change.node);
