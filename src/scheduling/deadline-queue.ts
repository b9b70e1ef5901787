import { growColumn } from "../base/typed-column.ts";
import type { MonotonicMs } from "../model/time.ts";

const NONE = -1;

/** A binary heap of slots, the earliest deadline first. */
interface Heap {
  slots: Int32Array<ArrayBuffer>;
  count: number;
}

/**
 * Deadlines of slots. Each slot has at most one deadline, for one of several causes, which are numbered from 0. Setting
 * and clearing a deadline takes O(log n). Equal deadlines are ordered by slot.
 */
export class DeadlineQueue {
  /** One heap for each cause. */
  readonly #heaps: readonly Heap[];
  #deadlines = new Float64Array(0);
  /** Index of each slot in its heap. */
  #positions = new Int32Array(0);
  #causes = new Int8Array(0);

  constructor(causes: number) {
    this.#heaps = Array.from({ length: causes }, () => ({ slots: new Int32Array(0), count: 0 }));
  }

  /** Sets the deadline of a slot. It replaces an earlier one. */
  set(slot: number, cause: number, due: MonotonicMs): void {
    this.#deadlines = growColumn(this.#deadlines, slot);
    this.#positions = growColumn(this.#positions, slot);
    this.#causes = growColumn(this.#causes, slot, NONE);
    this.clear(slot);
    const heap = this.#heaps[cause]!;
    heap.slots = growColumn(heap.slots, heap.count);
    this.#causes[slot] = cause;
    this.#deadlines[slot] = due;
    this.#put(heap, heap.count, slot);
    heap.count++;
    this.#siftUp(heap, heap.count - 1);
  }

  clear(slot: number): void {
    const cause = this.causeOf(slot);
    if (cause === NONE) return;
    const heap = this.#heaps[cause]!;
    const position = this.#positions[slot]!;
    this.#causes[slot] = NONE;
    heap.count--;
    const last = heap.slots[heap.count]!;
    if (last === slot) return;
    // The last slot fills the gap, and may have to move up or down from there.
    this.#put(heap, position, last);
    this.#siftDown(heap, this.#siftUp(heap, position));
  }

  /** Returns the slot with the earliest deadline of a cause, or -1 if there is none. */
  first(cause: number): number {
    const { count, slots } = this.#heaps[cause]!;
    return count === 0 ? NONE : slots[0]!;
  }

  /** Returns the deadline of a slot, or Infinity if it has none. */
  dueOf(slot: number): MonotonicMs {
    return this.causeOf(slot) === NONE ? Number.POSITIVE_INFINITY : this.#deadlines[slot]!;
  }

  /** Returns the cause of a slot's deadline, or -1 if it has none. */
  causeOf(slot: number): number {
    return this.#causes[slot] ?? NONE;
  }

  /** Returns all slots with a deadline of a cause, in no particular order. */
  slotsOf(cause: number): number[] {
    const { count, slots } = this.#heaps[cause]!;
    return [...slots.subarray(0, count)];
  }

  #isBefore(slot: number, other: number): boolean {
    const [due, otherDue] = [this.#deadlines[slot]!, this.#deadlines[other]!];
    return due < otherDue || (due === otherDue && slot < other);
  }

  #put(heap: Heap, position: number, slot: number): void {
    heap.slots[position] = slot;
    this.#positions[slot] = position;
  }

  /** Moves the slot at a position up to where it belongs. Returns its new position. */
  #siftUp(heap: Heap, from: number): number {
    const slot = heap.slots[from]!;
    let position = from;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (!this.#isBefore(slot, heap.slots[parent]!)) break;
      this.#put(heap, position, heap.slots[parent]!);
      position = parent;
    }
    this.#put(heap, position, slot);
    return position;
  }

  /** Moves the slot at a position down to where it belongs. */
  #siftDown(heap: Heap, from: number): void {
    const slot = heap.slots[from]!;
    let position = from;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= heap.count) break;
      if (child + 1 < heap.count && this.#isBefore(heap.slots[child + 1]!, heap.slots[child]!)) child++;
      if (this.#isBefore(slot, heap.slots[child]!)) break;
      this.#put(heap, position, heap.slots[child]!);
      position = child;
    }
    this.#put(heap, position, slot);
  }
}
