import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../..");

/** A page of the documentation. */
interface DocPage {
  /** Relative to the root of the repository, such as `docs/operate.md`. */
  readonly path: string;
  readonly text: string;
}

/** A command line in a `sh` block of a page. */
interface DocCommand {
  readonly page: string;
  /** Number of its first line. */
  readonly line: number;
  /** On one line and without comments. */
  readonly text: string;
}

/** Returns every page with commands. */
export const docPages = (): readonly DocPage[] =>
  ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...globSync("docs/*.md", { cwd: ROOT }).toSorted()].map((path) => ({
    path,
    text: readFileSync(join(ROOT, path), "utf8"),
  }));

/** Returns the languages of the fenced blocks of a page, `""` for blocks without one. */
export const blockLanguages = ({ text }: DocPage): readonly string[] =>
  [...text.matchAll(FENCED)].map(([, language]) => language!);

/** Returns the commands in the `sh` blocks of a page. `&&` separates commands, a backslash continues a line. */
export function commandsOf({ path, text }: DocPage): readonly DocCommand[] {
  return [...text.matchAll(FENCED)]
    .filter(([, language]) => language === "sh")
    .flatMap(({ 0: block, index }) => {
      const first = text.slice(0, index).split("\n").length;
      return logicalLines(block.split("\n").slice(1, -1)).flatMap(({ text: line, at }) =>
        withoutComment(line)
          .split(" && ")
          .map((command) => ({ page: path, line: first + 1 + at, text: command.trim().replace(/\s+/g, " ") }))
          .filter(({ text: command }) => command !== ""),
      );
    });
}

const FENCED = /^ *```(\w*)\n[\s\S]*?^ *```$/gm;

function logicalLines(lines: readonly string[]): readonly { readonly text: string; readonly at: number }[] {
  const joined: { text: string; at: number }[] = [];
  for (const [at, line] of lines.entries()) {
    const last = joined.at(-1);
    if (last?.text.endsWith("\\")) last.text = last.text.slice(0, -1) + line;
    else joined.push({ text: line, at });
  }
  return joined;
}

/** Removes a comment: a `#` after a blank. No documented command has one in a string. */
const withoutComment = (line: string): string => line.replace(/(?:^|\s)#.*$/, "");
