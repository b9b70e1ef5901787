import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** A file that is written from the code that runs, and never by hand. */
export interface GeneratedFile {
  /** From the root of the repository. */
  readonly path: string;
  content(): string;
}

/** The generated files whose content is not what it would be if they were written now. */
export const staleFiles = (files: readonly GeneratedFile[]): readonly GeneratedFile[] =>
  files.filter(({ path, content }) => readText(path) !== content());

/** Text of a file, by its path from the root of the repository; null: there is none. */
export function readText(path: string): string | null {
  try {
    return readFileSync(fromRoot(path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** An object as a generated file has it. */
export const formatJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const fromRoot = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/**
 * Writes every stale file; with `--check` among the options only names them, and is unhappy if there are any. `script`:
 * the npm script that writes them.
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
