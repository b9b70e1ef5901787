import { holdAll, type Exposition as Page, releaseAll } from "../../metrics/render/exposition.ts";
import type { Format } from "../../metrics/text-format.ts";

/** Older renderings that slow readers may keep in memory; at a further one, the readers of the oldest are cut off. */
const OLD_PAGES_MAX = 2;

/** One who reads a page: its chunks stay as they are until `done`. */
export interface Reader {
  /** Aborts when the memory is wanted back. */
  readonly revoked: AbortSignal;
  /** Gives the chunks back. Further calls do nothing. */
  done(): void;
}

/** All who read a page, the shown one or an older one. */
export interface Readers {
  admit(page: Page, format: Format): Reader;
  /** Calls back the oldest pages, where too many are held beside the one that is shown now. */
  callBack(shown: Page): void;
}

/** Creates a tracker without readers. */
export function createReaders(): Readers {
  const readers = new Set<{ readonly page: Page; readonly revocation: AbortController }>();
  return {
    admit(page, format) {
      const reader = { page, revocation: new AbortController() };
      holdAll(page.pieces[format]);
      readers.add(reader);
      return {
        revoked: reader.revocation.signal,
        done() {
          if (readers.delete(reader)) releaseAll(page.pieces[format]);
        },
      };
    },
    callBack(shown) {
      const oldPages = [...new Set([...readers].map(({ page }) => page))].filter((old) => old !== shown);
      const unaffordable = new Set(oldPages.slice(0, -OLD_PAGES_MAX));
      for (const { page, revocation } of readers) if (unaffordable.has(page)) revocation.abort();
    },
  };
}
