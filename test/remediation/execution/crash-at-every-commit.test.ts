import { expect, test } from "vitest";
import { runSteps } from "../../world/faults/crashed-steps.ts";

test("each step of an episode is sent once, regardless of the commit at which the process is killed", async () => {
  const { marks } = await runSteps(null);
  // The world run covers all commits; here only those of the first steps, before and after in turns.
  for (const [index, number] of marks.slice(0, 2).entries()) {
    const when = index % 2 === 0 ? "before" : "after";
    const { posts, end, violations } = await runSteps({ at: "commit", number, when });
    expect({ number, when, end, violations }).toEqual({ number, when, end: "given_up", violations: [] });
    expect(posts.length).toBeGreaterThanOrEqual(3);
  }
});
