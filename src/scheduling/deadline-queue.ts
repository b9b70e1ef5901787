import { growColumn } from "../base/typed-column.ts";
import type { MonotonicMs } from "../model/time.ts";

/**
 * Deadlines of slots, one each, for one of some causes: a binary heap a cause, in typed arrays, which knows the place
 * of each slot, so that a deadline is set and cleared in O(log n). Equal ones come in the order of the slots.
 */
export interface DeadlineQueue {
  /** Gives a slot a deadline, in place of what it had. Causes are numbered from 0. */
  set(slot: number, cause: number, due: MonotonicMs): void;
  clear(slot: number): void;
  /** The slot with the earliest deadline of a cause; -1: there is none. */
  first(cause: number): number;
  /** Infinity: the slot has none. */
  dueOf(slot: number): MonotonicMs;
  /** -1: the slot has no deadline. */
  causeOf(slot: number): number;
  /** The slots that have a deadline for a cause, in no order. */
  slotsOf(cause: number): number[];
}

const NONE = -1;

/** Slots as a heap, the one with the earliest deadline first. */
interface Heap {
  slots: Int32Array<ArrayBuffer>;
  count: number;
}

/** No slot has a deadline. */
export function createDeadlineQueue(causes: number): DeadlineQueue {
  const heaps: readonly Heap[] = Array.from({ length: causes }, () => ({ slots: new Int32Array(0), count: 0 }));
  let deadlines = new Float64Array(0);
  let places = new Int32Array(0);
  let causeOf = new Int8Array(0);

  const isBefore = (slot: number, other: number): boolean =>
    deadlines[slot]! < deadlines[other]! || (deadlines[slot]! === deadlines[other]! && slot < other);

  function putAt(heap: Heap, place: number, slot: number): void {
    heap.slots[place] = slot;
    places[slot] = place;
  }

  /** Moves what stands at a place up to where it belongs; returns that place. */
  function siftUp(heap: Heap, place: number): number {
    const slot = heap.slots[place]!;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(slot, heap.slots[parent]!)) break;
      putAt(heap, place, heap.slots[parent]!);
      place = parent;
    }
    putAt(heap, place, slot);
    return place;
  }

  /** Moves what stands at a place down to where it belongs. */
  function siftDown(heap: Heap, place: number): void {
    const slot = heap.slots[place]!;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.count) break;
      if (child + 1 < heap.count && isBefore(heap.slots[child + 1]!, heap.slots[child]!)) child++;
      if (isBefore(slot, heap.slots[child]!)) break;
      putAt(heap, place, heap.slots[child]!);
      place = child;
    }
    putAt(heap, place, slot);
  }

  function clear(slot: number): void {
    const cause = causeOf[slot] ?? NONE;
    if (cause === NONE) return;
    const heap = heaps[cause]!;
    const place = places[slot]!;
    causeOf[slot] = NONE;
    heap.count--;
    const last = heap.slots[heap.count]!;
    if (last === slot) return;
    // The last one fills the gap, and belongs above it or below.
    putAt(heap, place, last);
    siftDown(heap, siftUp(heap, place));
  }

  return {
    set(slot, cause, due) {
      deadlines = growColumn(deadlines, slot);
      places = growColumn(places, slot);
      causeOf = growColumn(causeOf, slot, NONE);
      clear(slot);
      const heap = heaps[cause]!;
      heap.slots = growColumn(heap.slots, heap.count);
      causeOf[slot] = cause;
      deadlines[slot] = due;
      putAt(heap, heap.count, slot);
      heap.count++;
      siftUp(heap, heap.count - 1);
    },
    clear,
    first: (cause) => (heaps[cause]!.count === 0 ? NONE : heaps[cause]!.slots[0]!),
    dueOf: (slot) => ((causeOf[slot] ?? NONE) === NONE ? Number.POSITIVE_INFINITY : deadlines[slot]!),
    causeOf: (slot) => causeOf[slot] ?? NONE,
    slotsOf: (cause) => [...heaps[cause]!.slots.subarray(0, heaps[cause]!.count)],
  };
}
