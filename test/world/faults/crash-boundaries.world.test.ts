import { expect, test } from "vitest";
import { runSteps } from "./crashed-steps.ts";

/** The steps in order. A step that a crash left in doubt is not sent again, so it may be missing. */
const EXPECTED_STEPS = ["disconnect", 'reboot {"force":false}', 'reboot {"force":true}', "quarantine"];

test("sends each step at most once and gives the node up if the process is killed before or after any commit", async () => {
  const { commits } = await runSteps(null);
  expect(commits).toBeGreaterThan(50);
  const missing = new Map<string, number>();
  for (let number = 1; number <= commits; number++) {
    for (const when of ["before", "after"] as const) {
      const { posts, end, steps, violations } = await runSteps({ at: "commit", number, when });
      const where = `killed ${when} commit ${number}`;
      expect({ where, end, steps, violations }).toEqual({ where, end: "given_up", steps: 5, violations: [] });
      expect(posts, where).toEqual(EXPECTED_STEPS.filter((step) => posts.includes(step)));
      const lost = EXPECTED_STEPS.filter((step) => !posts.includes(step));
      expect(lost.length, where).toBeLessThanOrEqual(1);
      for (const step of lost) missing.set(step, (missing.get(step) ?? 0) + 1);
    }
  }
  // A process killed between the "posting" row and the POST leaves the step in doubt. That happens once for each step.
  expect(Object.fromEntries(missing)).toEqual(Object.fromEntries(EXPECTED_STEPS.map((step) => [step, 1])));
});
