import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/**/*.world.test.ts"],
    testTimeout: 30_000,
    // Many tests wait for real servers, so three workers are useful on two cores as well.
    maxWorkers: 3,
    // Starting a worker per file takes longer than most files take to run. Tests clean up with onTestFinished, so that
    // files can share a worker.
    isolate: false,
    // Node strips the types of the sources itself, in less time than Vite transforms them.
    experimental: { viteModuleRunner: false },
  },
});
