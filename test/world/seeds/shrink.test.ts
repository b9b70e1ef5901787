import { expect, test } from "vitest";
import { shrinkCauses } from "./shrinking.ts";

const causes = Array.from({ length: 30 }, (_, index) => `cause ${index}`);

test("returns the causes that are needed together", async () => {
  const needed = ["cause 3", "cause 17", "cause 18"];
  const reproduces = (remaining: readonly string[]) =>
    Promise.resolve(needed.every((cause) => remaining.includes(cause)));
  expect((await shrinkCauses(causes, reproduces, 200)).remaining).toEqual(needed);
});

test("returns no cause for a failure that occurs without any", async () => {
  expect(await shrinkCauses(causes, () => Promise.resolve(true), 100)).toMatchObject({ remaining: [] });
});

test("stops after the maximum number of tries and keeps the necessary cause", async () => {
  const reproduces = (remaining: readonly string[]) => Promise.resolve(remaining.includes("cause 29"));
  const { remaining, tries } = await shrinkCauses(causes, reproduces, 4);
  expect(tries).toBe(4);
  expect(remaining).toContain("cause 29");
});
