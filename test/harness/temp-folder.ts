import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A temporary folder, removed after the test. */
export interface TempFolder {
  readonly path: string;
  /** Path of a file in it. */
  pathOf(name: string): string;
  /** Writes a file and returns its path. */
  write(name: string, text: string): string;
}

/** Creates an empty temporary folder. */
export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "proxywarden-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const at = (name: string) => join(path, name);
  return {
    path,
    pathOf: at,
    write(name, text) {
      writeFileSync(at(name), text);
      return at(name);
    },
  };
}
