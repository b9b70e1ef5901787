import { expect, test } from "vitest";
import { shrink } from "./shrink.ts";

const causes = Array.from({ length: 30 }, (_, index) => `cause ${index}`);

test("what is left of a list are the causes that are needed together", async () => {
  const needed = ["cause 3", "cause 17", "cause 18"];
  const happens = (kept: readonly string[]) => Promise.resolve(needed.every((cause) => kept.includes(cause)));
  expect((await shrink(causes, happens, 200)).kept).toEqual(needed);
});

test("what happens by itself needs no cause", async () => {
  expect(await shrink(causes, () => Promise.resolve(true), 100)).toMatchObject({ kept: [] });
});

test("no more is tried than allowed, and what is left still makes it happen", async () => {
  const happens = (kept: readonly string[]) => Promise.resolve(kept.includes("cause 29"));
  const { kept, tries } = await shrink(causes, happens, 4);
  expect(tries).toBe(4);
  expect(kept).toContain("cause 29");
});
