import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const FENCED = /^ *```[\s\S]*?^ *```$/gm;
const LINK = /\]\(([^)\s]*)[^)]*\)|<(?:a|img)\b[^>]*?(?:href|src)="([^"]*)"/g;

/** Removes fenced blocks and text in backticks, which contain no links or headings. */
const proseOf = (text: string): string => text.replace(FENCED, "").replace(/`[^`\n]*`/g, "``");

/** Returns the anchors of a page's headings as GitHub creates them. The second of a name ends with `-1`. */
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
