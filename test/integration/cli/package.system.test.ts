import { existsSync, globSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { VERSION } from "../../../src/cli/context.ts";
import { fileOf, joinModules, joinStyles } from "../../../src/web/ui/page-bundle.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { brokenLinksOf } from "../../source/doc-links.ts";
import { COMPILE_CACHE, type RunningProcess, runProgram, startCommand, startProcess } from "../process.ts";
import { waitUntil } from "../wait-until.ts";

/** It builds the package, and npm may read dependencies from the registry. */
const INSTALL_TIMEOUT_MS = 5 * MINUTE_MS;
const INSTALL_OPTIONS = ["--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
/** Files in the package. */
const PACKAGED = [
  ...["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"],
  ...["config", "deploy", "dist", "docs", "grafana", "package.json"],
];

const inRepository = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

test(
  "the package installs in an empty folder and runs there, and every link of its documents leads to a file of it",
  async () => {
    const folder = createTempFolder();
    await runNpm("pack", inRepository("."), "--pack-destination", folder.path);
    folder.write("package.json", "{}");
    const archive = folder.pathOf(`proxywarden-${VERSION}.tgz`);
    await runNpm("install", "--prefix", folder.path, ...INSTALL_OPTIONS, archive);
    const root = folder.pathOf("node_modules/proxywarden");
    const main = folder.pathOf("node_modules/.bin/proxywarden");
    expect(readFileSync(main, "utf8")).toMatch(
      /^#!\/usr\/bin\/env -S [A-Z0-9_= ]+ node --max-semi-space-size=4 --v8-pool-size=1\n/,
    );

    const start = (...args: readonly string[]) => startProcess(process.execPath, [main, ...args]).ended;
    const [shownVersion, good, policies] = await Promise.all([
      start("--version"),
      start("check", "--config", folder.write("good.yaml", GOOD)),
      start("policy", "test", join(root, "config/policies/tests/offline.yaml")),
    ]);
    expect(shownVersion).toEqual({ code: 0, out: `${VERSION}\n`, err: "" });
    expect(good).toMatchObject({ code: 0, out: expect.stringContaining(`${folder.pathOf("good.yaml")}: valid\n`) });
    expect(policies).toMatchObject({ code: 0, err: "" });
    // The page is served from the package, where it is JavaScript.
    const demo = startProcess(process.execPath, [main, "demo", "--nodes", "20", "--sessions", "20", "--port", "0"]);
    const page = await fetch(`${await urlOf(demo)}page/main.js`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
    expect(await page.text()).toMatch(/^const modules = \{\};\n/);
    demo.kill("SIGTERM");
    expect(await demo.ended).toMatchObject({ code: 0, err: "" });

    const files = globSync("**/*", { cwd: root, withFileTypes: true }).filter((each) => each.isFile());
    const paths = files.map(({ parentPath, name }) => relative(root, join(parentPath, name)));
    expect([...new Set(paths.map((path) => path.split("/")[0]!))].toSorted()).toEqual(PACKAGED);
    expect(paths.filter((path) => /^dist\/.*(?<!\.js|\.css|\.svg|\.html)$/.test(path))).toEqual([]);
    const dashboards = globSync("grafana/dashboards/*.json", { cwd: inRepository(".") });
    expect(paths).toEqual(expect.arrayContaining(dashboards));
    const pages = paths.filter((path) => path.endsWith(".md"));
    expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/operate.md"]));
    expect(pages.flatMap((path) => brokenLinksOf(root, path))).toEqual([]);
  },
  INSTALL_TIMEOUT_MS,
);

test("the status page is the same in a checkout and in the package, and serving it prints no error", async () => {
  const folder = createTempFolder();
  await runProgram(process.execPath, [inRepository("scripts/status-page-build.ts"), folder.pathOf("packed")], "");
  expect(existsSync(folder.pathOf("packed/web/ui/page/main.ts"))).toBe(false);
  const demo = startCommand("demo", "--nodes", "20", "--sessions", "20", "--port", "0");
  const url = await urlOf(demo);
  const packed = folder.pathOf("packed/web/ui/page");
  const names = globSync("**/*.{css,html,js,svg}", { cwd: packed });
  const files = new Map(names.map((name) => [name, readFileSync(join(packed, name), "utf8")]));
  files.set("uPlot.css", readFileSync(inRepository("node_modules/uplot/dist/uPlot.min.css"), "utf8"));
  const { html, css } = joinStyles(fileOf(files, "index.html"), files, "styles.css");
  const links = [...html.matchAll(/"page\/([\w/-]+\.(?:js|css|svg))"/g)].map(([, name]) => name!);
  expect(links).toEqual(expect.arrayContaining(["main.js", "styles.css", "icon.svg"]));
  const expected = [
    ["", html],
    ["page/styles.css", css],
    ["page/main.js", joinModules(files, "main.js")],
    ["page/icon.svg", fileOf(files, "icon.svg")],
  ] as const;
  for (const [path, text] of expected) {
    const served = await (await fetch(`${url}${path}`)).text();
    expect([path, served === text]).toEqual([path, true]);
  }
  demo.kill("SIGTERM");
  expect(await demo.ended).toMatchObject({ code: 0, err: "" });
});

/** Runs npm, with the environment of the test: it may say how the registry is reached. */
async function runNpm(...args: readonly string[]): Promise<void> {
  const { code, out, err } = await startProcess("npm", args, "", { ...process.env, ...COMPILE_CACHE }).ended;
  if (code !== 0) throw new Error(`npm ${args.join(" ")} exited with ${code}:\n${err}${out}`);
}

/** Waits until a demo prints the URL of its page. */
const urlOf = (demo: RunningProcess): Promise<string> =>
  waitUntil("the demo prints the URL of its page", () => /status page +(http:\S+)/.exec(demo.out())?.[1]);

const GOOD = "service: {base_url: https://proxy.internal, api_key: sesame, usage_scale: percent}\n";
