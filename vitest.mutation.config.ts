import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Slow files: simulated days and properties. They run last, so that most mutants are found before. */
const SLOW = /properties|arbitrary-headers|external-usage|failed-observations|detection|learned|month-of-polling/;

/** Runs quick files first: the run of a mutant ends with the first failing test. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => Number(SLOW.test(a.moduleId)) - Number(SLOW.test(b.moduleId)));
  }
}

export default defineConfig({
  test: {
    include: ["test/policy/**/*.test.ts", "test/rate-limit/**/*.test.ts", "test/scheduling/**/*.test.ts"],
    // Days of saturated polling: they would take minutes for each mutant that no test finds.
    exclude: ["test/rate-limit/saturation/{action-burst,ledger-days}.system.test.ts"],
    setupFiles: ["test/mutation-seed.ts"],
    env: { PROXYWARDEN_LONG_PROPERTIES: "1", TZ: "Asia/Kathmandu" },
    testTimeout: 120_000,
    isolate: false,
    sequence: { sequencer: QuickFirst },
  },
});
