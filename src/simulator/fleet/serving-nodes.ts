import type { Random } from "../../base/random.ts";
import { SIZE_MAX, type SimulatedNode } from "./node.ts";

/** The nodes that accept sessions. */
export interface ServingNodes {
  join(node: SimulatedNode): void;
  leave(node: SimulatedNode): void;
  /** Picks a random node, weighted by size. Returns null if no node serves. */
  choose(random: Random): SimulatedNode | null;
}

/** Rejections after which a node is accepted regardless of its size, so that the choice terminates. */
const REJECTED_CHOICES_MAX = 16;

/** Creates an empty set. */
export function createServingNodes(): ServingNodes {
  const members: SimulatedNode[] = [];
  const positions: number[] = [];
  return {
    join(node) {
      if ((positions[node.index] ?? -1) !== -1) return;
      positions[node.index] = members.length;
      members.push(node);
    },
    leave(node) {
      const position = positions[node.index] ?? -1;
      if (position === -1) return;
      const last = members.pop()!;
      positions[node.index] = -1;
      if (last === node) return;
      members[position] = last;
      positions[last.index] = position;
    },
    choose(random) {
      if (members.length === 0) return null;
      let node = members[Math.floor(random() * members.length)]!;
      for (let tries = 0; tries < REJECTED_CHOICES_MAX && random() * SIZE_MAX >= node.size; tries += 1) {
        node = members[Math.floor(random() * members.length)]!;
      }
      return node;
    },
  };
}
