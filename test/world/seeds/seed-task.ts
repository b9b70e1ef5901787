import { type Race, runRace } from "../faults/step-races.ts";
import { inputWithCauses, worldInput } from "../runs/world-input.ts";
import { runWorld, type Until, type WorldReport } from "../runs/world-run.ts";

/** A run for a process of the pool. */
export interface SeedTask {
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  /** Names of the faults and events to keep, or null for all. */
  readonly keep: readonly string[] | null;
  readonly until: Until;
  /** Runs this race at the commit with the number `seed`, instead of a world. The other fields are ignored. */
  readonly race?: Race;
}

/** The result of a task. */
export interface SeedResult extends WorldReport {
  readonly task: SeedTask;
  /** Processor time of the run, in seconds. */
  readonly cpuSeconds: number;
}

/** Runs a task in this process. */
export async function runTask(task: SeedTask): Promise<SeedResult> {
  const began = process.cpuUsage();
  const report = task.race === undefined ? await runWorldOf(task) : await runRace(task.race, task.seed);
  const { user, system } = process.cpuUsage(began);
  return { ...report, task, cpuSeconds: (user + system) / 1e6 };
}

function runWorldOf(task: SeedTask): Promise<WorldReport> {
  const input = worldInput(task.seed, task);
  return runWorld(task.keep === null ? input : inputWithCauses(input, new Set(task.keep)), task.until);
}
