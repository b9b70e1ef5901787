import type { PartialStrykerOptions } from "@stryker-mutator/api/core";

/** The code that is mutated: pure, and what actions and calls are decided by. */
const mutate = [
  "src/policy/**/*.ts",
  "src/rate-limit/**/*.ts",
  "src/scheduling/**/*.ts",
  // A page of the documentation: `npm run docs:check` compares it as a whole.
  "!src/policy/cel/reference.ts",
];

export default {
  mutate,
  testRunner: "vitest",
  // Without `related`, vitest reads no module graph for each mutant: the coverage of each test names the tests to run.
  vitest: { configFile: "vitest.mutation.config.ts", related: false },
  coverageAnalysis: "perTest",
  // Tables and constants of modules: each would need a new process and all of the tests.
  ignoreStatic: true,
  mutator: {
    // Strings are text for operators, or members of closed unions, which the compiler checks. A comparison with one is
    // mutated as a condition.
    excludedMutations: ["StringLiteral"],
  },
  // Vitest strips the types. The TypeScript that Stryker rewrites configurations with is older than the project's.
  ignorePatterns: [".stryker", "tsconfig*.json", "bench", "deploy", "docs", "grafana"],
  disableTypeChecks: false,
  concurrency: 1,
  // A mutant that is slow because the machine is busy is not a mutant that was found.
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
