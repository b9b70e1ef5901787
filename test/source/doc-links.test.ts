import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { brokenLinksOf } from "./doc-links.ts";

const ROOT = join(import.meta.dirname, "../..");
const pages = globSync(["*.md", "docs/**/*.md", "src/**/*.md", "deploy/**/*.md"], { cwd: ROOT }).toSorted();
const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");

test("every relative link of the documentation leads to an existing file and heading", () => {
  expect(pages).toEqual(
    expect.arrayContaining(["README.md", "SECURITY.md", "docs/operate.md", "src/model/glossary.md"]),
  );
  expect(pages.flatMap((path) => brokenLinksOf(ROOT, path))).toEqual([]);
});

test("links to missing files, and to missing headings of the same or another page, are detected", () => {
  const text = [
    "# A page: of `links`, and more",
    "[well](#a-page-of-links-and-more) [well](../README.md#run-it) [well](https://proxy.example.net/none)",
    "[no file](none.md) [no heading](../README.md#none) ![no picture](images/none.png) [nor here](#none)",
    "`[code](none.md)`",
  ].join("\n");
  expect(brokenLinksOf(ROOT, "docs/page.md", text).map((each) => each.split(": ")[1])).toEqual([
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
