import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Workers, and the processes that they start, share compiled code.
process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL("node_modules/.cache/compiled", import.meta.url));

// In UTC, a test would not notice that local time is taken for UTC, or the reverse.
process.env.TZ = "Asia/Kathmandu";

/** Settings of `npm test` and `npm run test:system`. */
export const settings = {
  // Only a test that hangs takes this long, even on a busy machine.
  testTimeout: 120_000,
  // Some tests wait for real servers, so one worker more than cores is useful on two cores. Each worker compiles all of
  // the code itself, so more of them take more CPU time than they save.
  maxWorkers: 3,
  // Starting a worker per file takes longer than most files take to run. Tests clean up with onTestFinished, so that
  // files can share a worker.
  isolate: false,
  // Node strips the types of the sources itself, in less time than Vite transforms them.
  experimental: { viteModuleRunner: false },
};

export default defineConfig({
  test: { ...settings, include: ["test/**/*.test.ts"], exclude: ["test/**/*.{world,system}.test.ts"] },
});
