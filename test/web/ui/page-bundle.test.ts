import { readdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { joinModules, joinStyles } from "../../../src/web/ui/page-bundle.ts";
import { readPageFiles } from "../../../src/web/ui/page-files.ts";

/** Runs a bundle and returns the exports of its modules. */
const run = (bundle: string) => new Function(`${bundle}return modules;`)() as Record<string, Record<string, unknown>>;

test("each module comes once, after those that it imports, with its own names", () => {
  const modules = new Map([
    [
      "main.js",
      'import {\n  one as first,\n  Two,\n} from "./a/one.js";\nimport { three } from "./three.js";\nexport const all = [first(), new Two().value, three];\n',
    ],
    [
      "a/one.js",
      'import { three } from "../three.js";\nconst own = 1;\nexport function one() {\n  return own + three;\n}\nexport class Two {\n  value = 2;\n}\n',
    ],
    ["three.js", "const own = 3;\nexport const three = own;\nexport async function later() {}\n"],
    ["unused.js", "throw new Error();"],
  ]);
  const exported = run(joinModules(modules, "main.js"));
  expect(Object.keys(exported)).toEqual(["three.js", "a/one.js", "main.js"]);
  expect(exported["main.js"]).toEqual({ all: [4, 2, 3] });
  expect(Object.keys(exported["three.js"]!)).toEqual(["three", "later"]);
});

test.each([
  ['import { b } from "./b.js";', "main.js is imported by a module that it imports"],
  ['import { c } from "./c.js";', "the status page has no file c.js"],
  ['import * as b from "./b.js";', "main.js has an import or export that can't be joined: import * as b from"],
  ["export default 1;", "main.js has an import or export that can't be joined: export default 1;"],
])("a bundle with %j is rejected", (source, message) => {
  const modules = new Map([
    ["main.js", source],
    ["b.js", 'import { a } from "./main.js";'],
  ]);
  expect(() => joinModules(modules, "main.js")).toThrow(message);
});

test("the page links one style sheet with all others in their order", async () => {
  const files = await readPageFiles();
  const { html, css } = joinStyles(files.get("index.html")!, new Map([...files, ["uPlot.css", ".u{}"]]), "styles.css");
  expect(html.match(/rel="stylesheet" href="[^"]*"/g)).toEqual(['rel="stylesheet" href="page/styles.css"']);
  expect(css.startsWith(".u{}")).toBe(true);
  expect(css.endsWith(files.get("styles/narrow-screens.css")!)).toBe(true);
  const styles = await readdir(new URL("../../../src/web/ui/page/styles/", import.meta.url));
  for (const name of styles) expect(css).toContain(files.get(`styles/${name}`));
});
