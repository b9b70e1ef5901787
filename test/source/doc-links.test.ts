import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const pages = globSync(["*.md", "docs/**/*.md", "src/**/*.md"], { cwd: ROOT }).toSorted();
const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");
/** What is in a fenced block or in backticks is no link, and no heading. */
const proseOf = (text: string): string => text.replace(/^ *```[\s\S]*?^ *```$/gm, "").replace(/`[^`\n]*`/g, "``");

/** The anchors of a page's headings, as GitHub makes them; the second of a name is followed by `-1`. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading] of text.replace(/^ *```[\s\S]*?^ *```$/gm, "").matchAll(/^#+ (.*)$/gm)) {
    const name = heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, "")
      .replaceAll(" ", "-");
    const repeats = [...anchors].filter((each) => each.replace(/-\d+$/, "") === name).length;
    anchors.add(anchors.has(name) ? `${name}-${repeats}` : name);
  }
  return anchors;
}

/** What a page's relative links lack. */
function brokenLinksOf(path: string, text: string): readonly string[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]*)[^)]*\)|<(?:a|img)\b[^>]*?(?:href|src)="([^"]*)"/g)]
    .map(([, written, html]) => written ?? html!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [file, anchor] = target.split("#") as [string, string?];
      const found = file === "" ? path : normalize(join(dirname(path), decodeURI(file)));
      if (found !== path && !existsSync(join(ROOT, found))) return true;
      return anchor !== undefined && !anchorsOf(found === path ? text : textOf(found)).has(anchor);
    })
    .map((target) => `${path}: ${target}`);
}

test("every relative link of the documentation leads to a file that there is, and to a heading of it", () => {
  expect(pages).toEqual(
    expect.arrayContaining(["README.md", "SECURITY.md", "docs/operate.md", "src/model/glossary.md"]),
  );
  expect(pages.flatMap((path) => brokenLinksOf(path, textOf(path)))).toEqual([]);
});

test("a link to no file, and one to no heading, of another page or of the same, are found out", () => {
  const text = [
    "# A page: of `links`, and more",
    "[well](#a-page-of-links-and-more) [well](../README.md#run-it) [well](https://proxy.example.net/none)",
    "[no file](none.md) [no heading](../README.md#none) ![no picture](images/none.png) [nor here](#none)",
    "`[code](none.md)`",
  ].join("\n");
  expect(brokenLinksOf("docs/page.md", text).map((each) => each.split(": ")[1])).toEqual([
    "none.md",
    "../README.md#none",
    "images/none.png",
    "#none",
  ]);
});

test("README links every page of docs/, and architecture.md every decision", () => {
  const linksOf = (path: string) =>
    [...textOf(path).matchAll(/\]\(([^)#]*\.md)/g)].map(([, target]) => join(dirname(path), target!));
  const linked = [...linksOf("README.md"), ...linksOf("docs/architecture.md")];
  expect(pages.filter((path) => path.startsWith("docs/") && !linked.includes(path))).toEqual([]);
});

test("every path of the repository that a page names exists", () => {
  const named = pages
    .filter((path) => path !== "CHANGELOG.md")
    .flatMap((path) =>
      [...textOf(path).matchAll(/`((?:src|test|scripts|grafana|deploy|config|bench)\/[\w./*-]+)`/g)].map(
        ([, target]) => `${path}: ${target}`,
      ),
    );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((line) => globSync(line.slice(line.indexOf(": ") + 2), { cwd: ROOT }).length === 0)).toEqual([]);
});
