import { expect, test } from "vitest";
import { RACES, runRace } from "./step-races.ts";

/** One for each step. */
const POSTS = 5;

test.each(RACES)("no invariant is violated whenever `%s` happens between two changes of an episode", async (race) => {
  const { marks, posts } = await runRace(null, 0);
  expect(posts).toBe(POSTS);
  for (let number = 1; number <= marks; number++) {
    const { violations } = await runRace(race, number);
    expect(violations, `${race} at commit ${number}`).toEqual([]);
  }
});
