import { growColumn } from "./typed-column.ts";

/** A set of slots that takes a byte per slot. A Set of a hundred thousand slots takes 2.6 MB. */
export class SlotSet {
  #isIn = new Uint8Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(slot: number): void {
    if (this.#isIn[slot] === 1) return;
    this.#isIn = growColumn(this.#isIn, slot);
    this.#isIn[slot] = 1;
    this.#size++;
  }

  delete(slot: number): void {
    if (this.#isIn[slot] !== 1) return;
    this.#isIn[slot] = 0;
    this.#size--;
  }
}
