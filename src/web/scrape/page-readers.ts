import { type NetworkExposition as Page, releaseAll, retainAll } from "../../metrics/render/exposition.ts";
import type { Format } from "../../metrics/text-format.ts";

/** Older renderings that slow clients may keep in memory. Above it the clients of the oldest are disconnected. */
const OLD_RENDERINGS_MAX = 2;

/** A client that reads an exposition. Its chunks are not overwritten until `release`. */
export interface PageReader {
  /** Aborts when the client must be disconnected. */
  readonly revoked: AbortSignal;
  /** Releases the chunks. Further calls do nothing. */
  release(): void;
}

/** Clients that read the current exposition or an older one. */
export interface PageReaders {
  admit(page: Page, format: Format): PageReader;
  /** Revokes the oldest expositions, if too many are retained besides the current one. */
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
