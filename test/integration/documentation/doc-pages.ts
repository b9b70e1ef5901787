import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../..");

/** A page of the documentation. */
interface DocPage {
  /** From the repository's root, such as `docs/operate.md`. */
  readonly path: string;
  readonly text: string;
}

/** A command line that a page tells its readers to type. */
interface DocCommand {
  readonly page: string;
  /** Of the line where it begins. */
  readonly line: number;
  /** As it stands there, on one line and without its comment. */
  readonly text: string;
}

/** Every page that says what to type. */
export const docPages = (): readonly DocPage[] =>
  ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...globSync("docs/*.md", { cwd: ROOT }).toSorted()].map((path) => ({
    path,
    text: readFileSync(join(ROOT, path), "utf8"),
  }));

/** Languages of a page's fenced blocks, `""` where one has none. */
export const blockLanguages = ({ text }: DocPage): readonly string[] =>
  [...text.matchAll(FENCED)].map(([, language]) => language!);

/** The commands of a page's `sh` blocks, one by one: what `&&` joins apart, and what a backslash continues together. */
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

/** A comment begins with a `#` after a blank; no command of ours has one in a string. */
const withoutComment = (line: string): string => line.replace(/(?:^|\s)#.*$/, "");
