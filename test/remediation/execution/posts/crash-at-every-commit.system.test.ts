import { expect, test } from "vitest";
import { runSteps } from "../../../world/faults/crashed-steps.ts";

test("each step of an episode is sent once, regardless of the commit at which the process is killed", async () => {
  const { marks } = await runSteps(null);
  // The world run covers all commits; here only those around the first POST. The first two commits of an episode begin it
  // and intend its action, the third says that the action is being sent, and the fourth has the response.
  const [, , posting, answered] = marks;
  for (const [number, when] of [
    [posting!, "after"],
    [answered!, "before"],
  ] as const) {
    const { posts, end, violations } = await runSteps({ at: "commit", number, when });
    expect({ number, when, end, violations }).toEqual({ number, when, end: "given_up", violations: [] });
    expect(posts.length).toBeGreaterThanOrEqual(3);
  }
});
