import { CHUNK_LINES_MAX } from "./chunk.ts";
import { COPY_STEP } from "./line-writer.ts";

/** The label text of consecutive slots in UTF-8. Immutable. */
export interface LabelPage {
  readonly view: DataView;
  /** Offset of each slot's text, and of the end of the last one. */
  readonly starts: Uint32Array;
}

/** Slots per page. A chunk covers a whole page or a part of one. */
export const PAGE_SLOTS = CHUNK_LINES_MAX;

/** The label texts of nodes by slot, which all families with the same labels share. */
export class LabelPages {
  #pages: LabelPage[] = [];

  /** Returns the page of a slot. */
  pageOf(slot: number): LabelPage {
    return this.#pages[Math.floor(slot / PAGE_SLOTS)]!;
  }

  /**
   * Updates the pages to `slots` slots. A page is replaced if its number of slots changed, or `isSame` returns false for
   * one of them. Yields after every page.
   */
  *update(slots: number, isSame: (slot: number) => boolean, textAt: (slot: number) => string): Generator<void, void> {
    this.#pages.length = Math.min(this.#pages.length, Math.ceil(slots / PAGE_SLOTS));
    for (let start = 0; start < slots; start += PAGE_SLOTS) {
      const end = Math.min(slots, start + PAGE_SLOTS);
      const page = start / PAGE_SLOTS;
      if (!isCurrent(this.#pages[page], start, end, isSame)) this.#pages[page] = createPage(start, end, textAt);
      yield;
    }
  }
}

function isCurrent(
  page: LabelPage | undefined,
  start: number,
  end: number,
  isSame: (slot: number) => boolean,
): boolean {
  if (page?.starts.length !== end - start + 1) return false;
  for (let slot = start; slot < end; slot++) if (!isSame(slot)) return false;
  return true;
}

function createPage(start: number, end: number, textAt: (slot: number) => string): LabelPage {
  const texts = Array.from({ length: end - start }, (_, index) => textAt(start + index));
  const starts = new Uint32Array(texts.length + 1);
  for (const [index, text] of texts.entries()) starts[index + 1] = starts[index]! + Buffer.byteLength(text);
  // The last step of a copy may read beyond the end.
  const bytes = Buffer.alloc(starts[texts.length]! + COPY_STEP);
  for (const [index, text] of texts.entries()) bytes.write(text, starts[index]!);
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), starts };
}
