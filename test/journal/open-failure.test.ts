import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stateFolderProblem } from "../../src/journal/open-failure.ts";

const folder = mkdtempSync(join(tmpdir(), "proxywarden-"));
writeFileSync(join(folder, "file"), "");

test("a folder that is there, or can be made, has no problem", () => {
  expect(stateFolderProblem(folder)).toBeNull();
  expect(stateFolderProblem(join(folder, "not", "yet", "there"))).toBeNull();
});

test("a file is not a folder, and the problem names it", () => {
  expect(stateFolderProblem(join(folder, "file"))).toBe(`${join(folder, "file")} is not a folder`);
});

test("nothing can be made below a file, and the problem names the file", () => {
  expect(stateFolderProblem(join(folder, "file", "state"))).toBe(`${join(folder, "file")} is not a folder`);
});
