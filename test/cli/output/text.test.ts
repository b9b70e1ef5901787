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

test("a table may have 200,000 rows", () => {
  const rows = Array.from({ length: 200_000 }, () => ["node_1"]);
  expect(alignColumns(rows, 1)).toHaveLength(200_000);
});
