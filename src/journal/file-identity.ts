import { statSync } from "node:fs";

/**
 * Remembers which files these are; the function it gives throws once a path leads to another file, or to none. A
 * database that was moved away or removed is still written to by whoever has it open, and what it says then dies with
 * the process; and where a lock file was removed, a second daemon may be at work.
 */
export function assertSameFiles(paths: readonly string[]): () => void {
  const known = paths.map((path) => ({ path, identity: identityOf(path) }));
  return () => {
    for (const { path, identity } of known) {
      if (identityOf(path) === identity) continue;
      throw new Error(`${path} was moved, removed or replaced while it was in use; put it back, or start anew`);
    }
  };
}

function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}
