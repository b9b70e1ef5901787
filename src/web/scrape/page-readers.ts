import { type NetworkExposition as Page, releaseAll, retainAll } from "../../metrics/render/exposition.ts";
import type { Format } from "../../metrics/text-format.ts";

/** Older renderings that slow clients may keep in memory. Above it the clients of the oldest are disconnected. */
const OLD_RENDERINGS_MAX = 2;

/** Creates a tracker of the clients that read the current exposition or an older one. */
export function createPageReaders() {
  const readers = new Set<{ readonly page: Page; readonly revocation: AbortController }>();
  return {
    /** Retains the chunks of a page until `release`. `revoked` aborts when the client must be disconnected. */
    admit(page: Page, format: Format) {
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
    /** Revokes the oldest expositions, if too many are retained besides the current one. */
    revokeOldest(current: Page): void {
      const oldPages = [...new Set([...readers].map(({ page }) => page))].filter((old) => old !== current);
      const revocable = new Set(oldPages.slice(0, -OLD_RENDERINGS_MAX));
      for (const { page, revocation } of readers) if (revocable.has(page)) revocation.abort();
    },
  };
}
