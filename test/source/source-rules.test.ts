// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are source texts, as the rules read them
import { describe, expect, test } from "vitest";
import { crowdedFolders, FOLDER_FILES_MAX, rules } from "./rules.ts";
import { importsOf, readSources, sourceOf } from "./source-file.ts";

const src = readSources("src");
const tests = readSources("test");

describe("over src/", () => {
  test("the sources are read, with their imports", () => {
    expect(src.map(({ path }) => path)).toContain("src/base/result.ts");
    expect(importsOf(src.find(({ path }) => path === "src/base/duration.ts")!)).toEqual(["./result.ts"]);
  });

  test.each([
    ["an import points to a lower tier or stays in its folder", rules.importDirection],
    ["a package is imported in its home only", rules.vendorHome],
    ["the pure tiers are pure", rules.purity],
    ["only main.ts ends the process", rules.processExit],
    ["no file has more than 300 lines", rules.fileLength],
    ["file names are kebab-case and specific, and exports are named", rules.naming],
    ["every export has a docstring", rules.docstrings],
  ])("%s", (_, rule) => {
    expect(src.flatMap(rule)).toEqual([]);
  });
});

describe("over test/", () => {
  test.each([
    ["no module is replaced and no test is skipped", rules.testConventions],
    ["no file has more than 300 lines", rules.fileLength],
    ["file names are kebab-case and specific", rules.naming],
  ])("%s", (_, rule) => {
    expect(tests.flatMap(rule)).toEqual([]);
  });
});

test("no folder of src/ or test/ holds more files than a reader can scan", () => {
  expect(crowdedFolders([...src, ...tests].map(({ path }) => path))).toEqual([]);
});

describe.each(["grafana", "scripts"] as const)("over %s/", (folder) => {
  const sources = readSources(folder);

  test.each([
    ["no file has more than 300 lines", rules.fileLength],
    ["exports are named", rules.naming],
    ["every export has a docstring", rules.docstrings],
  ])("%s", (_, rule) => {
    expect(sources.flatMap(rule)).toEqual([]);
  });
});

describe("the rules find", () => {
  test.each([
    // rule, path, text, part of the finding
    ["importDirection", "src/base/a.ts", `import { x } from "../model/node.ts";`, "src/model/node.ts"],
    ["importDirection", "src/base/b.ts", `import { x } from "../config/load.ts";`, "src/config/load.ts"],
    [
      "importDirection",
      "src/config/a.ts",
      `import type { X } from "../rate-limit/limits.ts";`,
      "src/rate-limit/limits.ts",
    ],
    [
      "importDirection",
      "src/api-client/a.ts",
      `import {\n  x,\n} from "../journal/sqlite/store.ts";`,
      "src/journal/sqlite/store.ts",
    ],
    ["importDirection", "src/policy/a.ts", `type X = import("../metrics/table.ts").X;`, "src/metrics/table.ts"],
    ["importDirection", "src/remediation/a.ts", `import "../web/server.ts";`, "src/web/server.ts"],
    ["importDirection", "src/web/a.ts", `const { run } = await import("../daemon/daemon.ts");`, "src/daemon/daemon.ts"],
    ["importDirection", "src/web/a.ts", `export { run } from "../cli/run.ts";`, "src/cli/run.ts"],
    [
      "importDirection",
      "src/simulator/a.ts",
      `import { x } from "../rate-limit/limits.ts";`,
      "src/rate-limit/limits.ts",
    ],
    ["importDirection", "src/remediation/a.ts", `import { x } from "../simulator/clock.ts";`, "src/simulator/clock.ts"],
    ["importDirection", "src/model/a.ts", `import { x } from "../../test/x.ts";`, "test/x.ts"],
    ["importDirection", "src/model/a.ts", `import { x } from "./node.js";`, "src/model/node.js"],
    ["importDirection", "src/attic/a.ts", "", "attic is on no tier"],
    ["vendorHome", "src/remediation/a.ts", `import { request } from "undici";`, "undici"],
    ["vendorHome", "src/remediation/a.ts", `import { DatabaseSync } from "node:sqlite";`, "node:sqlite"],
    ["vendorHome", "src/api-client/pagination/list-walk.ts", `import * as z from "zod/mini";`, "zod/mini"],
    ["vendorHome", "src/web/a.ts", `import x from "left-pad";`, "left-pad"],
    ["vendorHome", "src/web/a.ts", `const x = require("pino");`, "pino"],
    ["purity", "src/policy/a.ts", "const now = Date.now();", "reads the clock"],
    ["purity", "src/policy/a.ts", "const now = new Date();", "reads the clock"],
    ["purity", "src/policy/a.ts", "const now = +new Date;", "reads the clock"],
    ["purity", "src/policy/a.ts", "const now = Date();", "reads the clock"],
    ["purity", "src/metrics/a.ts", "performance.mark(name);", "reads the clock"],
    ["purity", "src/rate-limit/a.ts", "const jitter = Math.random();", "is random"],
    ["purity", "src/rate-limit/a.ts", "export async function f() {}", "waits"],
    ["purity", "src/rate-limit/a.ts", "setTimeout(f, 1);", "sets a timer"],
    ["purity", "src/config/a.ts", "const home = process.env.HOME;", "reaches outside"],
    ["purity", "src/config/a.ts", `import { readFileSync } from "node:fs";`, "node:fs"],
    ["purity", "src/model/a.ts", "const x = `${`${Date.now()}`}`;", "reads the clock"],
    ["processExit", "src/cli/run.ts", "process.exit(1);", "ends the process"],
    ["naming", "src/web/utils.ts", "", "says nothing"],
    ["naming", "src/web/index.ts", "", "says nothing"],
    ["naming", "src/common/a.ts", "", "says nothing"],
    ["naming", "src/web/rowViews.ts", "", "not kebab-case"],
    ["naming", "src/web/a.ts", `export * from "./b.ts";`, "re-exports"],
    ["naming", "src/web/a.ts", `export type { B } from "./b.ts";`, "re-exports"],
    ["naming", "src/web/a.ts", `export {\n  b,\n  c,\n} from "./b.ts";`, "re-exports"],
    ["naming", "src/web/a.ts", "export default 1;", "default export"],
    ["docstrings", "src/web/a.ts", "export const A = 1;", "a.ts:1: A has no docstring"],
    ["docstrings", "src/web/a.ts", "/** A. */\nexport const A = 1;\n\nexport type B = number;", "4: B has no"],
    ["docstrings", "src/web/a.ts", "// Not a docstring.\nexport function f() {}", "2: f has no"],
    ["testConventions", "test/a.test.ts", `vi.mock("node:fs");`, "replaces a module"],
    ["testConventions", "test/a.test.ts", `test.skip("x", () => {});`, "skips tests"],
    ["testConventions", "test/a.test.ts", `describe.each([1]).only("x", () => {});`, "skips tests"],
    ["testConventions", "test/a.test.ts", `test.concurrent.only("x", () => {});`, "skips tests"],
    ["testConventions", "test/a.test.ts", "expect(x).toMatchSnapshot();", "recorded snapshot"],
  ] as const)("%s, in %s: %j", (rule, path, text, what) => {
    expect(rules[rule](sourceOf(path, text)).join("\n")).toContain(what);
  });
});

test("a folder with one file too many is found, a full one is not", () => {
  const folder = (name: string, files: number) => Array.from({ length: files }, (_, n) => `src/${name}/a${n}.ts`);
  const paths = [...folder("full", FOLDER_FILES_MAX), ...folder("crowded", FOLDER_FILES_MAX + 1)];
  expect(crowdedFolders(paths)).toEqual([
    `src/crowded: has ${FOLDER_FILES_MAX + 1} files, more than ${FOLDER_FILES_MAX}`,
  ]);
});

test("a file of 301 lines is found, one of 300 is not", () => {
  expect(rules.fileLength(sourceOf("src/web/a.ts", "\n".repeat(301)))).toEqual([
    "src/web/a.ts: has 301 lines, more than 300",
  ]);
  expect(rules.fileLength(sourceOf("src/web/a.ts", "\n".repeat(300)))).toEqual([]);
});

describe("the rules accept", () => {
  test.each([
    [
      "importDirection",
      "src/remediation/a.ts",
      `import { x } from "../policy/decision.ts";\nimport { y } from "./b.ts";`,
    ],
    [
      "importDirection",
      "src/cli/a.ts",
      `import { x } from "../daemon/daemon.ts";\nimport { y } from "../simulator/clock.ts";`,
    ],
    ["vendorHome", "src/config/schema/config.ts", `import * as z from "zod/mini";\nimport { x } from "node:crypto";`],
    ["purity", "src/policy/a.ts", "const day = new Date(now); const utc = Date.UTC(2026, 1); // Date.now() elsewhere"],
    ["purity", "src/policy/a.ts", `const help = "await Date.now()" + 'process.exit()' + \`async \${day} new Date()\`;`],
    ["purity", "src/policy/a.ts", "const pattern = /[/'\"`]Date.now()/; const half = total / 2 / count;"],
    ["purity", "src/remediation/a.ts", "await clock.sleep(Date.now());"],
    ["processExit", "src/main.ts", "process.exit(2);"],
    [
      "docstrings",
      "src/web/a.ts",
      "/** States. */\nexport const A = [1] as const;\nexport type B = (typeof A)[number];",
    ],
    ["docstrings", "src/web/a.ts", "/** Units. */\nexport const A = 1;\nexport const B = 2;"],
    ["testConventions", "test/a.test.ts", `test("skip the only vi.mock", () => {});`],
  ] as const)("%s, in %s: %j", (rule, path, text) => {
    expect(rules[rule](sourceOf(path, text))).toEqual([]);
  });
});

test("comments and the insides of literals are blanked, and every offset is kept", () => {
  const text = 'a /* x */ = "q\'\\"" + `t ${ `in ${ {b: 1}.b } ner` } u` / 2; // end\nc = /[/]"/g;';
  const { code } = sourceOf("a.ts", text);
  expect(code).toBe('a         = "    " + `  ${ `   ${ {b: 1}.b }    ` }  ` / 2;       \nc = /     g;');
  expect(code).toHaveLength(text.length);
});
