import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/**/*.world.test.ts"],
    testTimeout: 30_000,
    // Many tests wait for real servers: two workers also on a machine of two cores.
    maxWorkers: 2,
    // A worker for each file would take longer to start than most files take to run. No test leaves anything behind that
    // another could meet: helpers clean up with onTestFinished.
    isolate: false,
  },
});
