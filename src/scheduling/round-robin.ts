import { growColumn } from "../base/typed-column.ts";

/** Link of a slot at an end of the queue. */
const END = -1;
/** Link of a slot that is not in the queue. */
const NOT_QUEUED = -2;

/** A queue of slots, stored as a linked list in typed arrays, with all operations in O(1). */
export class RoundRobin {
  #previous = new Int32Array(0);
  #next = new Int32Array(0);
  #first = END;
  #last = END;
  #count = 0;

  /** Puts a slot at the end, regardless of where it was. */
  enqueue(slot: number): void {
    this.#previous = growColumn(this.#previous, slot, NOT_QUEUED);
    this.#next = growColumn(this.#next, slot, NOT_QUEUED);
    this.remove(slot);
    this.#previous[slot] = this.#last;
    this.#next[slot] = END;
    if (this.#last === END) this.#first = slot;
    else this.#next[this.#last] = slot;
    this.#last = slot;
    this.#count++;
  }

  remove(slot: number): void {
    if (!this.has(slot)) return;
    const previous = this.#previous[slot]!;
    const next = this.#next[slot]!;
    if (previous === END) this.#first = next;
    else this.#next[previous] = next;
    if (next === END) this.#last = previous;
    else this.#previous[next] = previous;
    this.#next[slot] = NOT_QUEUED;
    this.#count--;
  }

  /** Returns the first slot, or -1 if the queue is empty. */
  first(): number {
    return this.#first;
  }

  has(slot: number): boolean {
    return slot < this.#next.length && this.#next[slot] !== NOT_QUEUED;
  }

  count(): number {
    return this.#count;
  }
}
