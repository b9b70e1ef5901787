// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are source texts, as the rules meet them
import { describe, expect, test } from "vitest";
import { rules } from "./rules.ts";
import { importsOf, readSources, sourceOf } from "./source.ts";

const src = readSources("src");
const tests = readSources("test");

describe("over src/", () => {
  test("there is something to read", () => {
    expect(src.map(({ path }) => path)).toContain("src/base/result.ts");
    expect(importsOf(src.find(({ path }) => path === "src/base/duration.ts")!)).toEqual(["./result.ts"]);
  });

  test.each([
    ["an import goes down the floors or stays in its folder", rules.importLaw],
    ["one room a vendor", rules.vendorLaw],
    ["the pure floors are pure", rules.purity],
    ["only main.ts ends the process", rules.exits],
    ["no file is over 300 lines", rules.fileLength],
    ["files are nouns, and hand nothing on", rules.naming],
    ["every exported thing has a docstring", rules.docstrings],
  ])("%s", (_, rule) => {
    expect(src.flatMap(rule)).toEqual([]);
  });
});

describe("over test/", () => {
  test.each([
    ["no module is replaced, no test left out", rules.testManners],
    ["no file is over 300 lines", rules.fileLength],
  ])("%s", (_, rule) => {
    expect(tests.flatMap(rule)).toEqual([]);
  });
});

describe("over grafana/", () => {
  const boards = readSources("grafana");

  test.each([
    ["no file is over 300 lines", rules.fileLength],
    ["files are nouns, and hand nothing on", rules.naming],
    ["every exported thing has a docstring", rules.docstrings],
  ])("%s", (_, rule) => {
    expect(boards.flatMap(rule)).toEqual([]);
  });
});

describe("the rules see", () => {
  test.each([
    // rule, path, text, what it says
    ["importLaw", "src/base/a.ts", `import { x } from "../model/node.ts";`, "src/model/node.ts"],
    ["importLaw", "src/config/a.ts", `import type { X } from "../budget/limits.ts";`, "src/budget/limits.ts"],
    ["importLaw", "src/service/a.ts", `import {\n  x,\n} from "../store/sqlite.ts";`, "src/store/sqlite.ts"],
    ["importLaw", "src/policy/a.ts", `type X = import("../metrics/table.ts").X;`, "src/metrics/table.ts"],
    ["importLaw", "src/engine/a.ts", `import "../web/server.ts";`, "src/web/server.ts"],
    ["importLaw", "src/web/a.ts", `const { run } = await import("../app.ts");`, "src/app.ts"],
    ["importLaw", "src/web/a.ts", `export { run } from "../commands/run.ts";`, "src/commands/run.ts"],
    ["importLaw", "src/simulator/a.ts", `import { x } from "../budget/limits.ts";`, "src/budget/limits.ts"],
    ["importLaw", "src/engine/a.ts", `import { x } from "../simulator/fleet.ts";`, "src/simulator/fleet.ts"],
    ["importLaw", "src/model/a.ts", `import { x } from "../../test/x.ts";`, "test/x.ts"],
    ["importLaw", "src/model/a.ts", `import { x } from "./node.js";`, "src/model/node.js"],
    ["importLaw", "src/attic/a.ts", "", "attic is on no floor"],
    ["vendorLaw", "src/engine/a.ts", `import { request } from "undici";`, "undici"],
    ["vendorLaw", "src/engine/a.ts", `import { DatabaseSync } from "node:sqlite";`, "node:sqlite"],
    ["vendorLaw", "src/service/pages.ts", `import * as z from "zod/mini";`, "zod/mini"],
    ["vendorLaw", "src/web/a.ts", `import x from "left-pad";`, "left-pad"],
    ["vendorLaw", "src/web/a.ts", `const x = require("pino");`, "pino"],
    ["purity", "src/policy/a.ts", "const now = Date.now();", "reads the clock"],
    ["purity", "src/policy/a.ts", "const now = new Date();", "reads the clock"],
    ["purity", "src/policy/a.ts", "const now = +new Date;", "reads the clock"],
    ["purity", "src/policy/a.ts", "const now = Date();", "reads the clock"],
    ["purity", "src/metrics/a.ts", "performance.mark(name);", "reads the clock"],
    ["purity", "src/budget/a.ts", "const jitter = Math.random();", "is random"],
    ["purity", "src/budget/a.ts", "export async function f() {}", "waits"],
    ["purity", "src/budget/a.ts", "setTimeout(f, 1);", "sets a timer"],
    ["purity", "src/config/a.ts", "const home = process.env.HOME;", "reaches outside"],
    ["purity", "src/config/a.ts", `import { readFileSync } from "node:fs";`, "node:fs"],
    ["purity", "src/model/a.ts", "const x = `${`${Date.now()}`}`;", "reads the clock"],
    ["exits", "src/commands/run.ts", "process.exit(1);", "ends the process"],
    ["naming", "src/web/utils.ts", "", "named after nothing"],
    ["naming", "src/web/index.ts", "", "named after nothing"],
    ["naming", "src/common/a.ts", "", "named after nothing"],
    ["naming", "src/web/a.ts", `export * from "./b.ts";`, "hands on"],
    ["naming", "src/web/a.ts", `export type { B } from "./b.ts";`, "hands on"],
    ["naming", "src/web/a.ts", `export {\n  b,\n  c,\n} from "./b.ts";`, "hands on"],
    ["naming", "src/web/a.ts", "export default 1;", "default export"],
    ["docstrings", "src/web/a.ts", "export const A = 1;", "a.ts:1: A has no docstring"],
    ["docstrings", "src/web/a.ts", "/** A. */\nexport const A = 1;\n\nexport type B = number;", "4: B has no"],
    ["docstrings", "src/web/a.ts", "// Not a docstring.\nexport function f() {}", "2: f has no"],
    ["testManners", "test/a.test.ts", `vi.mock("node:fs");`, "replaces a module"],
    ["testManners", "test/a.test.ts", `test.skip("x", () => {});`, "left out"],
    ["testManners", "test/a.test.ts", `describe.each([1]).only("x", () => {});`, "left out"],
    ["testManners", "test/a.test.ts", `test.concurrent.only("x", () => {});`, "left out"],
    ["testManners", "test/a.test.ts", "expect(x).toMatchSnapshot();", "came out before"],
  ] as const)("%s, in %s: %j", (rule, path, text, what) => {
    expect(rules[rule](sourceOf(path, text)).join("\n")).toContain(what);
  });
});

test("the rules see a file of 301 lines, and let one of 300 pass", () => {
  expect(rules.fileLength(sourceOf("src/web/a.ts", "\n".repeat(301)))).toEqual([
    "src/web/a.ts: has 301 lines, of 300 at most",
  ]);
  expect(rules.fileLength(sourceOf("src/web/a.ts", "\n".repeat(300)))).toEqual([]);
});

describe("the rules let pass", () => {
  test.each([
    ["importLaw", "src/engine/a.ts", `import { x } from "../policy/decide.ts";\nimport { y } from "./b.ts";`],
    ["importLaw", "src/commands/a.ts", `import { x } from "../app.ts";\nimport { y } from "../simulator/fleet.ts";`],
    ["vendorLaw", "src/service/wire.ts", `import * as z from "zod/mini";\nimport { x } from "node:crypto";`],
    ["purity", "src/policy/a.ts", "const day = new Date(now); const utc = Date.UTC(2026, 1); // Date.now() elsewhere"],
    ["purity", "src/policy/a.ts", `const help = "await Date.now()" + 'process.exit()' + \`async \${day} new Date()\`;`],
    ["purity", "src/policy/a.ts", "const pattern = /[/'\"`]Date.now()/; const half = total / 2 / count;"],
    ["purity", "src/engine/a.ts", "await clock.sleep(Date.now());"],
    ["exits", "src/main.ts", "process.exit(2);"],
    [
      "docstrings",
      "src/web/a.ts",
      "/** States. */\nexport const A = [1] as const;\nexport type B = (typeof A)[number];",
    ],
    ["docstrings", "src/web/a.ts", "/** Units. */\nexport const A = 1;\nexport const B = 2;"],
    ["testManners", "test/a.test.ts", `test("skip the only vi.mock", () => {});`],
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
