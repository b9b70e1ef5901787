import { expect, test } from "vitest";
import { runSteps } from "../../world/faults/crashed-steps.ts";
import { worldInput } from "../../world/runs/world-input.ts";
import { runWorld } from "../../world/runs/world-run.ts";

/** Four hours with faults, and the quiet period. */
const DAYS = 16 / 24;

test.each([106])("no invariant is violated in the world of seed %i, in 16 hours of a small fleet", async (seed) => {
  const { violations } = await runWorld(worldInput(seed, { nodes: 60, days: DAYS }));
  expect(violations, `npm run world -- --seed ${seed} --nodes 60 --days ${DAYS} replays it`).toEqual([]);
});

test("each step of an episode is sent once, regardless of the commit at which the process is killed", async () => {
  const { marks } = await runSteps(null);
  // The world run covers all commits; here only those of the first steps, before and after in turns.
  for (const [index, number] of marks.slice(0, 8).entries()) {
    const when = index % 2 === 0 ? "before" : "after";
    const { posts, end, violations } = await runSteps({ at: "commit", number, when });
    expect({ number, when, end, violations }).toEqual({ number, when, end: "given_up", violations: [] });
    expect(posts.length).toBeGreaterThanOrEqual(3);
  }
});
