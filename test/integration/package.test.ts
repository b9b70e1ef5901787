import { copyFileSync, readFileSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { newFolder } from "./folder.ts";
import { runTool, start } from "./process.ts";

const inRepository = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

test("the package as it is built runs on its own: --version, and check of a good and of a bad configuration", async () => {
  const folder = newFolder();
  const tsc = inRepository("node_modules/typescript/bin/tsc");
  const project = inRepository("tsconfig.build.json");
  expect(await runTool(process.execPath, [tsc, "-p", project, "--outDir", folder.at("dist")], "")).toBe("");
  copyFileSync(inRepository("package.json"), folder.at("package.json"));
  symlinkSync(inRepository("node_modules"), folder.at("node_modules"));
  const main = folder.at("dist/main.js");
  expect(readFileSync(main, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);

  const { version } = JSON.parse(readFileSync(folder.at("package.json"), "utf8")) as { version: string };
  const [told, good, bad] = await Promise.all([
    start(process.execPath, [main, "--version"]).ended,
    start(process.execPath, [main, "check", "--config", folder.write("good.yaml", GOOD)]).ended,
    start(process.execPath, [main, "check", "--config", folder.write("bad.yaml", "service: 1\n")]).ended,
  ]);
  expect(told).toEqual({ code: 0, out: `${version}\n`, err: "" });
  expect(good).toMatchObject({ code: 0, out: `${folder.at("good.yaml")}: valid\n` });
  expect(bad).toMatchObject({ code: 1, err: expect.stringContaining(`${folder.at("bad.yaml")}:1:10: service: `) });
});

const GOOD = "service: {base_url: https://proxy.example.net, api_key: sesame, usage_scale: percent}\n";
