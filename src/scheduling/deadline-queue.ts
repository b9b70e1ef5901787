import { createEventQueue, type EventQueue } from "../base/event-queue.ts";
import { growColumn } from "../base/typed-column.ts";
import type { MonotonicMs } from "../model/time.ts";

const NONE = -1;
/** Number of queued deadlines per slot above which those that are no longer needed are removed. */
const ENTRIES_PER_SLOT_MAX = 2;

/**
 * Deadlines of slots. Each slot has at most one deadline, for one of several causes, which are numbered from 0. Setting
 * a deadline takes O(log n). Equal deadlines are ordered by slot.
 */
export class DeadlineQueue {
  /** One queue for each cause. It may also contain deadlines that were cleared or replaced. */
  readonly #queues: readonly EventQueue[];
  #deadlines = new Float64Array(0);
  #causes = new Int8Array(0);

  constructor(causes: number) {
    this.#queues = Array.from({ length: causes }, createEventQueue);
  }

  /** Sets the deadline of a slot. It replaces an earlier one. */
  set(slot: number, cause: number, due: MonotonicMs): void {
    this.#deadlines = growColumn(this.#deadlines, slot);
    this.#causes = growColumn(this.#causes, slot, NONE);
    this.#deadlines[slot] = due;
    this.#causes[slot] = cause;
    const queue = this.#queues[cause]!;
    queue.add(due, slot);
    if (queue.size() > ENTRIES_PER_SLOT_MAX * this.#causes.length) this.#prune(cause);
  }

  clear(slot: number): void {
    if (slot < this.#causes.length) this.#causes[slot] = NONE;
  }

  /** Returns the slot with the earliest deadline of a cause, or -1 if there is none. */
  first(cause: number): number {
    const queue = this.#queues[cause]!;
    while (queue.size() > 0 && !this.#isCurrent(queue.next(), cause, queue.nextAt())) queue.take();
    return queue.size() === 0 ? NONE : queue.next();
  }

  /** Returns the deadline of a slot, or Infinity if it has none. */
  dueOf(slot: number): MonotonicMs {
    return this.causeOf(slot) === NONE ? Number.POSITIVE_INFINITY : this.#deadlines[slot]!;
  }

  /** Returns the cause of a slot's deadline, or -1 if it has none. */
  causeOf(slot: number): number {
    return this.#causes[slot] ?? NONE;
  }

  /** Returns all slots with a deadline of a cause. */
  slotsOf(cause: number): number[] {
    const slots: number[] = [];
    for (const [slot, other] of this.#causes.entries()) if (other === cause) slots.push(slot);
    return slots;
  }

  /** Removes deadlines that were cleared or replaced, and repeated ones of slots that got the same deadline again. */
  #prune(cause: number): void {
    const isKept = new Uint8Array(this.#causes.length);
    this.#queues[cause]!.prune((at, slot) => {
      if (isKept[slot] === 1 || !this.#isCurrent(slot, cause, at)) return false;
      isKept[slot] = 1;
      return true;
    });
  }

  #isCurrent(slot: number, cause: number, due: MonotonicMs): boolean {
    return this.#causes[slot] === cause && this.#deadlines[slot] === due;
  }
}
