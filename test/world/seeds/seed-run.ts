import { HOUR_MS } from "../../../src/base/duration.ts";
import { HOLD_REASONS } from "../../../src/policy/decision.ts";
import { causesOf, worldInput } from "../runs/world-input.ts";
import type { SeedPool } from "./seed-pool.ts";
import type { SeedResult, SeedTask } from "./seed-task.ts";
import { shrinkCauses } from "./shrinking.ts";

/** The most replays to shrink the faults and events of one seed. */
const REPLAYS_MAX = 40;
/** The most violations to print for one seed. */
const VIOLATIONS_SHOWN = 6;

/** Runs tasks and prints a line for each and a summary. Returns whether all completed without a violation. */
export async function runSeeds(pool: SeedPool, tasks: readonly SeedTask[]): Promise<boolean> {
  const results: SeedResult[] = [];
  let failedProcesses = 0;
  await Promise.all(
    tasks.map(async (task) => {
      try {
        const result = await pool.run(task);
        results.push(result);
        print(lineOf(result));
        if (result.violations.length > 0) await explainFailure(pool, result);
      } catch (error) {
        failedProcesses++;
        print(`seed ${task.seed}: ${error}`);
      }
    }),
  );
  print(summaryOf(results, failedProcesses));
  return failedProcesses === 0 && results.every(({ violations }) => violations.length === 0);
}

/** Returns the command that runs a task again. */
export const replayOf = ({ seed, nodes, days }: SeedTask, keep: readonly string[] | null = null): string =>
  `npm run world -- --seed ${seed} --nodes ${nodes} --days ${days}${keep === null ? "" : ` --keep "${keep.join(",")}"`}`;

async function explainFailure(pool: SeedPool, result: SeedResult): Promise<void> {
  const { task, violations } = result;
  for (const { invariant, at, detail } of violations.slice(0, VIOLATIONS_SHOWN)) {
    print(`  ${(at / HOUR_MS).toFixed(2)} h: ${invariant}: ${detail}`);
  }
  print(`  replay: ${replayOf(task)}`);
  const { invariant } = violations[0]!;
  const causes = causesOf(worldInput(task.seed, task));
  const names = task.keep ?? causes.map(({ name }) => name);
  const stillFails = async (keep: readonly string[]) => {
    const replay = await pool.run({ ...task, keep, until: { invariant } });
    return replay.violations.some((violation) => violation.invariant === invariant);
  };
  const { remaining, tries } = await shrinkCauses(names, stillFails, REPLAYS_MAX);
  print(
    `  seed ${task.seed}: "${invariant}" is still violated with ${remaining.length} of ${names.length} faults and events (${tries} replays):`,
  );
  for (const { name, text } of causes) if (remaining.includes(name)) print(`    ${name} ${text}`);
  print(`  replay: ${replayOf(task, remaining)}`);
}

function lineOf({ task, violations, cpuSeconds, failingNodes, ...report }: SeedResult): string {
  const { posts, episodes, processes, calls, digest } = report;
  const failing = Object.entries(failingNodes).map(([outcome, count]) => `${count} ${outcome}`);
  return [
    `seed ${task.seed}: ${violations.length === 0 ? "ok" : `${violations.length} violations`}`,
    `${task.nodes} nodes, ${task.days} d, ${processes} processes, ${calls} calls, ${episodes} episodes, ${posts} actions`,
    `failing at the end: ${failing.length === 0 ? "none" : failing.join(", ")}`,
    `${cpuSeconds.toFixed(1)} s, ${digest}`,
  ].join("; ");
}

function summaryOf(results: readonly SeedResult[], failedProcesses: number): string {
  const sum = (of: (result: SeedResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const failed = results.filter(({ violations }) => violations.length > 0).map(({ task }) => task.seed);
  const cpuSeconds = sum((result) => result.cpuSeconds);
  const days = sum(({ task }) => task.days);
  return [
    `${results.length} seeds, ${days} days, ${sum(({ episodes }) => episodes)} episodes, ${sum(({ posts }) => posts)} actions`,
    `hold reasons that never occurred: ${unseenReasons(results)}`,
    `${(cpuSeconds / Math.max(1, results.length)).toFixed(1)} CPU seconds a seed`,
    failed.length + failedProcesses === 0
      ? "no violations"
      : `violations in seeds ${failed.toSorted((a, b) => a - b).join(", ") || "none"}; ${failedProcesses} processes failed`,
  ].join("; ");
}

/** Lists hold reasons that occurred in no run, so that the invariants about them were not tested. */
function unseenReasons(results: readonly SeedResult[]): string {
  const seen = new Set(results.flatMap(({ reasons }) => Object.keys(reasons)));
  const unseen = HOLD_REASONS.filter((reason) => !seen.has(reason));
  return unseen.length === 0 ? "none" : unseen.join(", ");
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
