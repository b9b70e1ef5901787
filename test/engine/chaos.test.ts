import { expect, test } from "vitest";
import { liveThrough } from "../world/chaos.ts";
import { climb } from "../world/ladder.ts";

test.each([101, 102, 103])("no law is broken in the turmoil of seed %i, over some hours", async (seed) => {
  const { breaches } = await liveThrough(seed, { hours: 5, nodes: 120 });
  expect(breaches, `WORLD_SEED=${seed} npm run world -- chaos replays it, and longer`).toEqual([]);
});

test("a ladder is climbed once, whatever commit about it the process is killed at", async () => {
  const { marks } = await climb(null);
  // All of them in the world run; here those of the first steps, in turns.
  for (const [index, number] of marks.slice(0, 12).entries()) {
    const when = index % 2 === 0 ? "before" : "after";
    const { posts, end, breaches } = await climb({ at: "commit", number, when });
    expect({ number, when, end, breaches }).toEqual({ number, when, end: "given_up", breaches: [] });
    expect(posts.length).toBeGreaterThanOrEqual(3);
  }
});
