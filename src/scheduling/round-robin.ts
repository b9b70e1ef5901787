import { growColumn } from "../base/typed-column.ts";

/** Slots in the order of their turns: a list linked through typed arrays, O(1) in all it does, however long it is. */
export interface RoundRobin {
  /** Puts a slot at the end, wherever it was. */
  enqueue(slot: number): void;
  remove(slot: number): void;
  /** Whose turn it is; -1: nobody is there. */
  first(): number;
  has(slot: number): boolean;
  count(): number;
}

/** Beside a slot at an end of the list. */
const END_OF_QUEUE = -1;
/** Beside a slot that is not in the list. */
const NOT_QUEUED = -2;

/** Nobody is there. */
export function createRoundRobin(): RoundRobin {
  let before = new Int32Array(0);
  let after = new Int32Array(0);
  let first = END_OF_QUEUE;
  let last = END_OF_QUEUE;
  let count = 0;

  const has = (slot: number): boolean => slot < after.length && after[slot] !== NOT_QUEUED;

  function remove(slot: number): void {
    if (!has(slot)) return;
    const previous = before[slot]!;
    const next = after[slot]!;
    if (previous === END_OF_QUEUE) first = next;
    else after[previous] = next;
    if (next === END_OF_QUEUE) last = previous;
    else before[next] = previous;
    after[slot] = NOT_QUEUED;
    count--;
  }

  return {
    enqueue(slot) {
      before = growColumn(before, slot, NOT_QUEUED);
      after = growColumn(after, slot, NOT_QUEUED);
      remove(slot);
      before[slot] = last;
      after[slot] = END_OF_QUEUE;
      if (last === END_OF_QUEUE) first = slot;
      else after[last] = slot;
      last = slot;
      count++;
    },
    remove,
    first: () => first,
    has,
    count: () => count,
  };
}
