import { expect, test } from "vitest";
import { RACES, runRace } from "./faults/step-races.ts";

const EXPECTED_POSTS = ["disconnect 200", "reboot 200", "quarantine 200", "reboot 200", "disconnect 200"];

test.each(RACES)("no invariant is violated whenever `%s` happens between two changes of an episode", async (race) => {
  const { marks, posts } = await runRace(null, 0);
  expect(posts).toEqual(EXPECTED_POSTS);
  for (let number = 1; number <= marks; number++) {
    const { violations } = await runRace(race, number);
    expect(violations, `${race} at commit ${number}`).toEqual([]);
  }
});
