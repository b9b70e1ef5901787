import { HOUR_MS } from "../../src/base/duration.ts";
import { HOLD_REASONS } from "../../src/model/decision.ts";
import type { SeedPool } from "./seed-pool.ts";
import { firstLaw, type SeedResult, type SeedTask } from "./seed-task.ts";
import { shrink } from "./shrink.ts";
import { causesOf, worldInput } from "./world-input.ts";

/** Replays that the shrinking of one seed may take. */
const REPLAYS_MAX = 40;
/** Breaches of one seed that are printed. */
const BREACHES_SHOWN = 6;

/** Runs tasks, prints a line for each and a summary. Returns whether no law was broken. */
export async function runSeeds(pool: SeedPool, tasks: readonly SeedTask[]): Promise<boolean> {
  const results: SeedResult[] = [];
  const lost: string[] = [];
  await Promise.all(
    tasks.map(async (task) => {
      try {
        const result = await pool.run(task);
        results.push(result);
        print(lineOf(result));
        if (result.breaches.length > 0) await explainFailure(pool, result);
      } catch (error) {
        lost.push(`${error}`);
        print(`seed ${task.seed}: ${error}`);
      }
    }),
  );
  print(summaryOf(results, lost.length));
  return lost.length === 0 && results.every(({ breaches }) => breaches.length === 0);
}

/** The command that runs a task again. */
export const replayOf = ({ seed, nodes, days }: SeedTask, keep: readonly string[] | null = null): string =>
  `npm run world -- --seed ${seed} --nodes ${nodes} --days ${days}${keep === null ? "" : ` --keep "${keep.join(",")}"`}`;

async function explainFailure(pool: SeedPool, result: SeedResult): Promise<void> {
  const { task, breaches } = result;
  for (const { law, at, detail } of breaches.slice(0, BREACHES_SHOWN)) {
    print(`  ${(at / HOUR_MS).toFixed(2)} h: ${law}: ${detail}`);
  }
  print(`  replay: ${replayOf(task)}`);
  const law = firstLaw(breaches)!;
  const causes = causesOf(worldInput(task.seed, task));
  const names = task.keep ?? causes.map(({ name }) => name);
  const stillBreaks = async (keep: readonly string[]) => {
    const again = await pool.run({ ...task, keep, until: { law } });
    return again.breaches.some((each) => each.law === law);
  };
  const { kept, tries } = await shrink(names, stillBreaks, REPLAYS_MAX);
  print(
    `  seed ${task.seed}: "${law}" is still broken with ${kept.length} of ${names.length} faults and events (${tries} replays):`,
  );
  for (const { name, text } of causes) if (kept.includes(name)) print(`    ${name} ${text}`);
  print(`  replay: ${replayOf(task, kept)}`);
}

function lineOf({ task, breaches, cpuSeconds, accounts, ...report }: SeedResult): string {
  const { posts, episodes, lives, calls, digest } = report;
  const ill = Object.entries(accounts).map(([account, count]) => `${count} ${account}`);
  return [
    `seed ${task.seed}: ${breaches.length === 0 ? "ok" : `${breaches.length} laws broken`}`,
    `${task.nodes} nodes, ${task.days} d, ${lives} lives, ${calls} calls, ${episodes} episodes, ${posts} actions`,
    `ill at the end: ${ill.length === 0 ? "none" : ill.join(", ")}`,
    `${cpuSeconds.toFixed(1)} s, ${digest}`,
  ].join("; ");
}

function summaryOf(results: readonly SeedResult[], lost: number): string {
  const sum = (of: (result: SeedResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const failed = results.filter(({ breaches }) => breaches.length > 0).map(({ task }) => task.seed);
  const cpuSeconds = sum((result) => result.cpuSeconds);
  const days = sum(({ task }) => task.days);
  return [
    `${results.length} seeds, ${days} days, ${sum(({ episodes }) => episodes)} episodes, ${sum(({ posts }) => posts)} actions`,
    `reasons that never held: ${neverHeld(results)}`,
    `${(cpuSeconds / Math.max(1, results.length)).toFixed(1)} CPU seconds a seed`,
    failed.length + lost === 0
      ? "no law was broken"
      : `laws were broken in seeds ${failed.toSorted((a, b) => a - b).join(", ")}; ${lost} processes were lost`,
  ].join("; ");
}

/** Reasons to hold that no run met: what the laws say of them was not tried. */
function neverHeld(results: readonly SeedResult[]): string {
  const met = new Set(results.flatMap(({ reasons }) => Object.keys(reasons)));
  const never = HOLD_REASONS.filter((reason) => !met.has(reason));
  return never.length === 0 ? "none" : never.join(", ");
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
