import type { PartialStrykerOptions } from "@stryker-mutator/api/core";

/** The code to mutate: pure code that decides on actions and API calls. */
const mutate = ["src/policy/**/*.ts", "src/rate-limit/**/*.ts", "src/scheduling/**/*.ts"];

export default {
  mutate,
  testRunner: "vitest",
  // The coverage of each test determines the tests to run, so vitest need not read the module graph (`related`).
  vitest: { configFile: "vitest.mutation.config.ts", related: false },
  coverageAnalysis: "perTest",
  // Mutants in tables and constants of modules would each need a new process and all tests.
  ignoreStatic: true,
  mutator: {
    // Strings are text for operators or members of unions, which the compiler checks. Comparisons with strings are mutated
    // as conditions.
    excludedMutations: ["StringLiteral"],
  },
  // Vitest strips the types. Stryker's own TypeScript, which would rewrite tsconfig files, is older than the project's.
  ignorePatterns: [".stryker", "tsconfig*.json", "bench", "deploy", "docs", "grafana"],
  disableTypeChecks: false,
  concurrency: 1,
  // A busy machine must not turn a slow mutant into a timeout, which counts as found.
  timeoutFactor: 3,
  timeoutMS: 15_000,
  dryRunTimeoutMinutes: 30,
  incremental: true,
  incrementalFile: ".stryker/incremental.json",
  tempDirName: ".stryker/sandbox",
  reporters: ["clear-text", "json"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: ".stryker/report.json" },
  thresholds: { high: 95, low: 85, break: 85 },
} satisfies PartialStrykerOptions;
