import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/**/*.world.test.ts"],
    testTimeout: 30_000,
    // Many tests wait for real servers: two workers also on a machine of two cores.
    maxWorkers: 2,
  },
});
