import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MUTATIONS } from "./mutations.ts";

const ROOT = join(import.meta.dirname, "../../..");

test.each(MUTATIONS)("the edits of the deliberate fault '$name' match the source", ({ edits }) => {
  for (const { file, find, replace } of edits) {
    const text = readFileSync(join(ROOT, file), "utf8");
    expect({ file, find, count: text.split(find).length - 1 }).toEqual({ file, find, count: 1 });
    expect(replace).not.toBe(find);
  }
});
