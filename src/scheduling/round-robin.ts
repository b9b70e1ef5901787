import { withRoom } from "../base/typed-column.ts";

/** Slots in the order of their turns: a list linked through typed arrays, O(1) in all it does, however long it is. */
export interface Turns {
  /** Puts a slot at the end, wherever it was. */
  append(slot: number): void;
  remove(slot: number): void;
  /** Whose turn it is; -1: nobody is there. */
  first(): number;
  has(slot: number): boolean;
  count(): number;
}

/** Beside a slot at an end of the list. */
const END = -1;
/** Beside a slot that is not in the list. */
const OUT = -2;

/** Nobody is there. */
export function createTurns(): Turns {
  let before = new Int32Array(0);
  let after = new Int32Array(0);
  let first = END;
  let last = END;
  let count = 0;

  const has = (slot: number): boolean => slot < after.length && after[slot] !== OUT;

  function remove(slot: number): void {
    if (!has(slot)) return;
    const previous = before[slot]!;
    const next = after[slot]!;
    if (previous === END) first = next;
    else after[previous] = next;
    if (next === END) last = previous;
    else before[next] = previous;
    after[slot] = OUT;
    count--;
  }

  return {
    append(slot) {
      before = withRoom(before, slot, OUT);
      after = withRoom(after, slot, OUT);
      remove(slot);
      before[slot] = last;
      after[slot] = END;
      if (last === END) first = slot;
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
