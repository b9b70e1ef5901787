import { defineConfig } from "vitest/config";

/** Settings of `npm test` and `npm run test:system`. */
export const settings = {
  testTimeout: 30_000,
  // Many tests wait for real servers, so more workers than cores are useful on two cores as well.
  maxWorkers: 4,
  // Starting a worker per file takes longer than most files take to run. Tests clean up with onTestFinished, so that
  // files can share a worker.
  isolate: false,
  // Node strips the types of the sources itself, in less time than Vite transforms them.
  experimental: { viteModuleRunner: false },
};

export default defineConfig({
  test: { ...settings, include: ["test/**/*.test.ts"], exclude: ["test/**/*.{world,system}.test.ts"] },
});
