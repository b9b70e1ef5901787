import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

test("the short form of the bench prints all of its tables, without a missing number", async () => {
  const { stdout } = await run(process.execPath, ["bench/main.ts", "--quick"]);
  expect(stdout.split("\n\n").map((table) => table.split("|")[1]!.trim())).toEqual([
    "exposition, 12 series and 1 info series per node",
    "page of 1,000 records",
    "evaluation of 20 policies on 100,000 nodes",
  ]);
  expect(stdout).toContain("**speedup**");
  expect(stdout).not.toMatch(/NaN|Infinity|undefined/);
});
