import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files of simulated days and of properties. A mutant that another test finds first never reaches them. */
const SLOW = /properties|arbitrary-headers|external-usage|failed-observations|detection|learned|month-of-polling/;

/** Quick files first: a mutant's run ends with the first test that fails. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => Number(SLOW.test(a.moduleId)) - Number(SLOW.test(b.moduleId)));
  }
}

export default defineConfig({
  test: {
    include: ["test/policy/**/*.test.ts", "test/rate-limit/**/*.test.ts", "test/scheduling/**/*.test.ts"],
    // Days of saturated polling: minutes for each mutant that no test finds.
    exclude: ["test/rate-limit/action-burst.test.ts", "test/rate-limit/ledger-days.test.ts"],
    setupFiles: ["test/mutation-seed.ts"],
    testTimeout: 120_000,
    isolate: false,
    sequence: { sequencer: QuickFirst },
  },
});
