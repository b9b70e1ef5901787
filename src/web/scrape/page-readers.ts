import { type NetworkExposition as Page, releaseAll, retainAll } from "../../metrics/render/exposition.ts";
import type { Format } from "../../metrics/text-format.ts";

/** Older renderings that slow readers may keep in memory; at a further one, the readers of the oldest are cut off. */
const OLD_RENDERINGS_MAX = 2;

/** One who reads a page: its chunks stay as they are until `done`. */
export interface PageReader {
  /** Aborts when the memory is wanted back. */
  readonly revoked: AbortSignal;
  /** Gives the chunks back. Further calls do nothing. */
  release(): void;
}

/** All who read a page, the shown one or an older one. */
export interface PageReaders {
  admit(page: Page, format: Format): PageReader;
  /** Calls back the oldest pages, where too many are held beside the one that is shown now. */
  revokeOldest(shown: Page): void;
}

/** Creates a tracker without readers. */
export function createPageReaders(): PageReaders {
  const readers = new Set<{ readonly page: Page; readonly revocation: AbortController }>();
  return {
    admit(page, format) {
      const reader = { page, revocation: new AbortController() };
      retainAll(page.chunks[format]);
      readers.add(reader);
      return {
        revoked: reader.revocation.signal,
        release() {
          if (readers.delete(reader)) releaseAll(page.chunks[format]);
        },
      };
    },
    revokeOldest(shown) {
      const oldPages = [...new Set([...readers].map(({ page }) => page))].filter((old) => old !== shown);
      const revocable = new Set(oldPages.slice(0, -OLD_RENDERINGS_MAX));
      for (const { page, revocation } of readers) if (revocable.has(page)) revocation.abort();
    },
  };
}
