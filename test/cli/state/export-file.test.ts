import { execFileSync, spawn } from "node:child_process";
import { lstatSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { runInProcess } from "../terminal.ts";

test("an export through a symbolic link creates or replaces the file that the link leads to", async () => {
  const folder = createTempFolder();
  const config = folder.write("proxywarden.yaml", "state: {path: state}\n");
  const store = orThrow(openSqliteStore(folder.pathOf("state")));
  await store.close();
  const [file, link] = [folder.pathOf("state.jsonl"), folder.pathOf("link")];
  symlinkSync("state.jsonl", link);
  for (const old of [null, "old"]) {
    if (old !== null) folder.write("state.jsonl", old);
    expect(await runInProcess("state", "export", "--config", config, link)).toEqual({ code: 0, out: "", err: "" });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(file, "utf8")).toBe('{"proxywarden_state":2}\n{"kind":"end","rows":0}\n');
  }
});

test("an export through a relative link in a linked folder creates the file that the link leads to", async () => {
  const folder = createTempFolder();
  const config = folder.write("proxywarden.yaml", "state: {path: state}\n");
  await orThrow(openSqliteStore(folder.pathOf("state"))).close();
  mkdirSync(folder.pathOf("backups/daily"), { recursive: true });
  symlinkSync("backups/daily", folder.pathOf("folder"));
  symlinkSync("../state.jsonl", folder.pathOf("backups/daily/latest"));
  const link = folder.pathOf("folder/latest");
  expect(await runInProcess("state", "export", "--config", config, link)).toEqual({ code: 0, out: "", err: "" });
  expect(readFileSync(link, "utf8")).toBe(readFileSync(folder.pathOf("backups/state.jsonl"), "utf8"));
});

test("an export that can't create its unfinished file says what failed", async () => {
  const folder = createTempFolder();
  const config = folder.write("proxywarden.yaml", "state: {path: state}\n");
  await orThrow(openSqliteStore(folder.pathOf("state"))).close();
  const file = folder.pathOf("state.jsonl");
  mkdirSync(`${file}.unfinished`);
  const { code, err } = await runInProcess("state", "export", "--config", config, file);
  expect(code).toBe(1);
  expect(err).toMatch(/^proxywarden: the state can't be exported: .*EISDIR.*state\.jsonl\.unfinished/);
});

test("an export does not replace a pipe or a device", async () => {
  const pipe = createTempFolder().pathOf("pipe");
  execFileSync("mkfifo", [pipe]);
  // As for /dev/stdout in a pipeline, the link leads to something that has no path.
  const { pid, stdin } = spawn("cat");
  onTestFinished(() => void stdin.end());
  for (const path of [pipe, `/proc/${pid}/fd/0`])
    expect(await runInProcess("state", "export", path)).toEqual({
      code: 1,
      out: "",
      err: `proxywarden: ${path} is not a regular file; - stands for standard output\n`,
    });
  expect(lstatSync(pipe).isFIFO()).toBe(true);
});
