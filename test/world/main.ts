import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { scriptOptions } from "../harness/script-options.ts";
import { nodesOf } from "./runs/world-input.ts";
import { runMutations } from "./seeds/mutation-run.ts";
import { createSeedPool } from "./seeds/seed-pool.ts";
import { runSeeds } from "./seeds/seed-run.ts";

// `npm run world` runs the suites of this folder, then some seeds. See CONTRIBUTING.md.

const OPTIONS = {
  seeds: { type: "string" },
  seed: { type: "string" },
  from: { type: "string", default: "1" },
  days: { type: "string", default: "1" },
  nodes: { type: "string" },
  workers: { type: "string" },
  keep: { type: "string" },
  mutations: { type: "boolean", default: false },
  mutation: { type: "string" },
} as const;

/** Number of seeds if `--seeds` is absent. */
const SEEDS_DEFAULT = 24;
const ROOT = join(import.meta.dirname, "../..");

const args = process.argv.slice(2);
const hasOptions = args.some((arg) => arg.startsWith("--"));
process.exitCode = hasOptions ? await runOptions(args) : await runSuites(args);

/** Runs the suites that match the filters; without filters, all suites and some seeds. */
async function runSuites(filters: readonly string[]): Promise<number> {
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const config = ["--config", "vitest.world.config.ts"];
  const { status } = spawnSync(process.execPath, [vitest, "run", ...config, ...filters], {
    cwd: ROOT,
    stdio: "inherit",
  });
  if (status !== 0 || filters.length > 0) return status ?? 1;
  return runOptions(["--seeds", String(SEEDS_DEFAULT)]);
}

async function runOptions(options: readonly string[]): Promise<number> {
  const values = scriptOptions(OPTIONS, ["seeds", "seed", "from", "days", "nodes", "workers"], options);
  const workers = Number(values.workers ?? availableParallelism());
  if (values.mutations || values.mutation !== undefined)
    return (await runMutations(workers, values.mutation ?? null)) ? 0 : 1;
  const first = Number(values.seed ?? values.from);
  const count = values.seed === undefined ? Number(values.seeds ?? SEEDS_DEFAULT) : 1;
  const tasks = Array.from({ length: count }, (_, index) => ({
    seed: first + index,
    nodes: values.nodes === undefined ? nodesOf(first + index) : Number(values.nodes),
    days: Number(values.days),
    keep: values.keep === undefined ? null : values.keep.split(",").filter((name) => name !== ""),
    until: {},
  }));
  const pool = createSeedPool(workers);
  const isPassed = await runSeeds(pool, tasks);
  pool.close();
  return isPassed ? 0 : 1;
}
