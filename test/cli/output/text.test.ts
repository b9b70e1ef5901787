import { expect, test } from "vitest";
import { alignColumns } from "../../../src/cli/output/text.ts";

test("columns are as wide as their widest cell; numbers are aligned right", () => {
  const rows = [
    ["node", "calls"],
    ["eu-west-1", "7"],
    ["a", "12"],
  ];
  expect(alignColumns(rows, 1)).toEqual(["node       calls", "eu-west-1      7", "a             12"]);
});

test("a table may have as many rows as the largest fleet has nodes", () => {
  const rows = Array.from({ length: 1_000_000 }, () => ["node_1"]);
  expect(alignColumns(rows, 1)).toHaveLength(1_000_000);
});
