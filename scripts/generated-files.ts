import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** A file that is generated from the source and never edited by hand. */
export interface GeneratedFile {
  /** Relative to the root of the repository. */
  readonly path: string;
  content(): string;
}

/** Returns the files whose content is out of date. */
export const staleFiles = (files: readonly GeneratedFile[]): readonly GeneratedFile[] =>
  files.filter(({ path, content }) => readText(path) !== content());

/** Reads a file by its path from the root of the repository. Returns null if it does not exist. */
export function readText(path: string): string | null {
  try {
    return readFileSync(fromRoot(path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Formats a value as JSON for a generated file. */
export const formatJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const fromRoot = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/**
 * Writes every stale file. With the option `--check` it only lists them, and sets the exit code 1 if there are any. For
 * an unknown option it sets the exit code 2. `script` is the npm script that writes the files.
 */
export function writeGeneratedFiles(files: readonly GeneratedFile[], script: string, options: readonly string[]): void {
  const unknown = options.filter((option) => option !== "--check");
  if (unknown.length > 0) {
    console.error(`unknown option ${unknown.join(" ")}; the only one is --check`);
    process.exitCode = 2;
    return;
  }
  const check = options.includes("--check");
  for (const { path, content } of staleFiles(files)) {
    if (!check) {
      mkdirSync(dirname(fromRoot(path)), { recursive: true });
      writeFileSync(fromRoot(path), content());
    }
    console.log(check ? `${path} is out of date: run npm run ${script}` : `${path} written`);
    if (check) process.exitCode = 1;
  }
}
