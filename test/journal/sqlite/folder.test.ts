import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accessProblem } from "../../../src/journal/sqlite/folder.ts";

const folder = mkdtempSync(join(tmpdir(), "proxywarden-"));
writeFileSync(join(folder, "file"), "");

test("a folder that exists or can be created has no problem", () => {
  expect(accessProblem(folder)).toBeNull();
  expect(accessProblem(join(folder, "not", "yet", "there"))).toBeNull();
});

test("names a file in place of the folder", () => {
  expect(accessProblem(join(folder, "file"))).toBe(`${join(folder, "file")} is not a folder`);
});

test("names a file in place of a parent folder", () => {
  expect(accessProblem(join(folder, "file", "state"))).toBe(`${join(folder, "file")} is not a folder`);
});
