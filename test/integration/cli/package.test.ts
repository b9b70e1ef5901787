import { copyFileSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createTempFolder } from "../folder.ts";
import { type RunningProcess, runProgram, startCommand, startProcess } from "../process.ts";
import { waitUntil } from "../wait-until.ts";

const inRepository = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

test("the built package runs: --version, check of a valid and an invalid configuration, and the page of a demo", async () => {
  const folder = createTempFolder();
  const tsc = inRepository("node_modules/typescript/bin/tsc");
  const project = inRepository("tsconfig.build.json");
  expect(await runProgram(process.execPath, [tsc, "-p", project, "--outDir", folder.pathOf("dist")], "")).toBe("");
  expect(
    await runProgram(process.execPath, [inRepository("scripts/status-page-build.ts"), folder.pathOf("dist")], ""),
  ).toBe("");
  copyFileSync(inRepository("package.json"), folder.pathOf("package.json"));
  for (const name of ["node_modules", "config"]) symlinkSync(inRepository(name), folder.pathOf(name));
  const main = folder.pathOf("dist/main.js");
  expect(readFileSync(main, "utf8")).toMatch(/^#!\/usr\/bin\/env -S node --max-semi-space-size=16\n/);

  const { version } = JSON.parse(readFileSync(folder.pathOf("package.json"), "utf8")) as { version: string };
  const [shownVersion, good, bad] = await Promise.all([
    startProcess(process.execPath, [main, "--version"]).ended,
    startProcess(process.execPath, [main, "check", "--config", folder.write("good.yaml", GOOD)]).ended,
    startProcess(process.execPath, [main, "check", "--config", folder.write("bad.yaml", "service: 1\n")]).ended,
  ]);
  expect(shownVersion).toEqual({ code: 0, out: `${version}\n`, err: "" });
  expect(good).toMatchObject({ code: 0, out: `${folder.pathOf("good.yaml")}: valid\n` });
  // The page is served from the package, where it is JavaScript.
  const demo = startProcess(process.execPath, [main, "demo", "--nodes", "20", "--sessions", "20", "--port", "0"]);
  const page = await fetch(`${await urlOf(demo)}page/main.js`);
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  expect(await page.text()).toContain('from "./event-stream.js"');
  demo.kill("SIGTERM");
  expect(await demo.ended).toMatchObject({ code: 0, err: "" });
  expect(bad).toMatchObject({ code: 1, err: expect.stringContaining(`${folder.pathOf("bad.yaml")}:1:10: service: `) });
});

test("the status page is the same in a checkout and in the package, and serving it prints no error", async () => {
  const folder = createTempFolder();
  await runProgram(process.execPath, [inRepository("scripts/status-page-build.ts"), folder.pathOf("packed")], "");
  expect(existsSync(folder.pathOf("packed/web/ui/page/main.ts"))).toBe(false);
  const demo = startCommand("demo", "--nodes", "20", "--sessions", "20", "--port", "0");
  const url = await urlOf(demo);
  const page = await (await fetch(url)).text();
  const names = [...page.matchAll(/"page\/([\w/-]+\.(?:js|css|svg))"/g)].map(([, name]) => name!);
  const ownFiles = names.filter((name) => !name.startsWith("uPlot"));
  expect(ownFiles).toEqual(expect.arrayContaining(["main.js", "styles/base.css", "icon.svg"]));
  for (const name of ownFiles) {
    const served = await (await fetch(`${url}page/${name}`)).text();
    expect([name, served === readFileSync(folder.pathOf(`packed/web/ui/page/${name}`), "utf8")]).toEqual([name, true]);
  }
  demo.kill("SIGTERM");
  expect(await demo.ended).toMatchObject({ code: 0, err: "" });
});

/** Waits until a demo prints the URL of its page. */
const urlOf = (demo: RunningProcess): Promise<string> =>
  waitUntil("the demo prints the URL of its page", () => /status page +(http:\S+)/.exec(demo.out())?.[1]);

const GOOD = "service: {base_url: https://proxy.example.net, api_key: sesame, usage_scale: percent}\n";
