import type { Steps } from "../../base/steps.ts";
import { CHUNK_LINES_MAX } from "./chunk.ts";
import { encodeTexts, type Texts } from "./line-writer.ts";

/** Slots per page. A chunk covers a whole page or a part of one. */
export const PAGE_SLOTS = CHUNK_LINES_MAX;

/** Returns whether the text of a slot is the same as before. Null if those of all slots are. */
export type SlotComparison = ((slot: number) => boolean) | null;

/** The label texts of nodes by slot, in pages of {@link PAGE_SLOTS}. All families with the same labels share them. */
export class LabelPages {
  #pages: Texts[] = [];

  /** Returns the page of a slot. */
  pageOf(slot: number): Texts {
    return this.#pages[Math.floor(slot / PAGE_SLOTS)]!;
  }

  /**
   * Updates the pages to `slots` slots. A page is replaced if its number of slots changed, or `isSame` returns false for
   * one of them; if it is null, the texts of all slots are the same. Yields after every page.
   */
  *update(slots: number, isSame: SlotComparison, textAt: (slot: number) => string): Steps<void> {
    this.#pages.length = Math.min(this.#pages.length, Math.ceil(slots / PAGE_SLOTS));
    for (let start = 0; start < slots; start += PAGE_SLOTS) {
      const end = Math.min(slots, start + PAGE_SLOTS);
      const page = start / PAGE_SLOTS;
      if (!isCurrent(this.#pages[page], start, end, isSame)) {
        this.#pages[page] = encodeTexts(Array.from({ length: end - start }, (_, index) => textAt(start + index)));
      }
      yield;
    }
  }
}

function isCurrent(page: Texts | undefined, start: number, end: number, isSame: SlotComparison): boolean {
  if (page?.offsets.length !== end - start + 1) return false;
  if (isSame === null) return true;
  for (let slot = start; slot < end; slot++) if (!isSame(slot)) return false;
  return true;
}
