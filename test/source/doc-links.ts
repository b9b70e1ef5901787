import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const FENCED = /^ *```[\s\S]*?^ *```$/gm;
const LINK = /\]\(([^)\s]*)[^)]*\)|<(?:a|img)\b[^>]*?(?:href|src)="([^"]*)"/g;

/** What is in a fenced block or in backticks is no link, and no heading. */
const proseOf = (text: string): string => text.replace(FENCED, "").replace(/`[^`\n]*`/g, "``");

/** The anchors of a page's headings, as GitHub makes them; the second of a name is followed by `-1`. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading] of text.replace(FENCED, "").matchAll(/^#+ (.*)$/gm)) {
    const name = heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, "")
      .replaceAll(" ", "-");
    const repeats = [...anchors].filter((each) => each.replace(/-\d+$/, "") === name).length;
    anchors.add(anchors.has(name) ? `${name}-${repeats}` : name);
  }
  return anchors;
}

/**
 * The relative links of a page that lead to no file below `root`, or to no heading of it. `path`: of the page, relative
 * to `root`.
 */
export function brokenLinksOf(
  root: string,
  path: string,
  text = readFileSync(join(root, path), "utf8"),
): readonly string[] {
  return [...proseOf(text).matchAll(LINK)]
    .map(([, written, html]) => written ?? html!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [file, anchor] = target.split("#") as [string, string?];
      const found = file === "" ? path : normalize(join(dirname(path), decodeURI(file)));
      if (found !== path && !existsSync(join(root, found))) return true;
      if (anchor === undefined) return false;
      return !anchorsOf(found === path ? text : readFileSync(join(root, found), "utf8")).has(anchor);
    })
    .map((target) => `${path}: ${target}`);
}
