import type { Breach } from "./stage.ts";
import { keptInput, worldInput } from "./world-input.ts";
import { runWorld, type Until, type WorldReport } from "./world-run.ts";

/** A run that a process is asked for. */
export interface SeedTask {
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  /** The faults and events that stay, by their names; null: all. */
  readonly keep: readonly string[] | null;
  readonly until: Until;
}

/** What a process answers. */
export interface SeedResult extends WorldReport {
  readonly task: SeedTask;
  /** Processor time of the run, in seconds. */
  readonly cpuSeconds: number;
}

/** Runs a task in this process. */
export async function runTask(task: SeedTask): Promise<SeedResult> {
  const began = process.cpuUsage();
  const whole = worldInput(task.seed, task);
  const report = await runWorld(task.keep === null ? whole : keptInput(whole, new Set(task.keep)), task.until);
  const { user, system } = process.cpuUsage(began);
  return { ...report, task, cpuSeconds: (user + system) / 1e6 };
}

/** The first law that a run broke; null: none. */
export const firstLaw = (breaches: readonly Breach[]): string | null => breaches[0]?.law ?? null;
