import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { scriptOptions } from "../../test/harness/script-options.ts";
import { allCells, type Cell, titleOf } from "./cell.ts";
import type { CellRun } from "./cell-run.ts";
import { DETECTION_KINDS, quantile } from "./detection.ts";
import { freshnessDocument } from "./document.ts";
import { resultTables, targetTable } from "./report.ts";
import { CONTENDERS, type Result } from "./result.ts";
import { checkTargets } from "./targets.ts";

const options = scriptOptions(
  {
    seed: { type: "string", default: "1" },
    nodes: { type: "string" },
    plan: { type: "string" },
    conditions: { type: "string" },
    json: { type: "boolean", default: false },
  },
  ["seed", "nodes"],
);
const seed = Number(options.seed);
const cells = allCells(seed)
  .filter(({ nodes }) => options.nodes === undefined || nodes === Number(options.nodes))
  .filter(({ plan }) => options.plan === undefined || plan === options.plan)
  .filter(({ conditions }) => options.conditions === undefined || conditions === options.conditions);
if (cells.length === 0) throw new Error("no cell has this size, plan and conditions; see bench/freshness/cell.ts");
const runs = await runAll(cells);

if (options.json) console.log(JSON.stringify(runs.map(summary), null, 2));
else console.log(`seed ${seed}\n\n${targetTable(runs)}\n\n${resultTables(runs)}`);
// Only a complete run with the default seed updates the document.
if (cells.length === allCells(seed).length && seed === 1) {
  writeFileSync(new URL("../../docs/freshness.md", import.meta.url), freshnessDocument(runs, seed));
}
const missed = runs.flatMap(checkTargets).filter(({ isReached }) => !isReached);
for (const { cell, target, value, bound } of missed) {
  console.error(`MISSED: ${cell.nodes} nodes, ${titleOf(cell)}: ${target} is ${value}, must be ${bound}`);
}
if (missed.length > 0) process.exitCode = 1;

/** Replaces all latencies of a kind by their median and 95th percentile, each null if too few faults were found. */
function summary({ cell, results }: CellRun) {
  const short = ({ latencies, ...rest }: Result) => ({
    ...rest,
    latenciesMs: Object.fromEntries(
      DETECTION_KINDS.map((kind) => [
        kind,
        { median: quantile(latencies[kind], 0.5), p95: quantile(latencies[kind], 0.95) },
      ]),
    ),
  });
  return { cell, results: Object.fromEntries(CONTENDERS.map((name) => [name, short(results[name])])) };
}

/** Runs the cells in as many processes as there are processors, the longest cells first. */
async function runAll(all: readonly Cell[]): Promise<readonly CellRun[]> {
  const waiting = all.toReversed();
  const results = new Map<Cell, CellRun>();
  const worker = async () => {
    const child = fork(new URL("./cell-process.ts", import.meta.url), { serialization: "advanced" });
    for (let cell = waiting.shift(); cell !== undefined; cell = waiting.shift()) {
      const run = await runInProcess(child, cell);
      process.stderr.write(
        `${cell.nodes.toLocaleString("en")} nodes, ${titleOf(cell)}: seed ${cell.seed}, ${run.cpuSeconds.toFixed(1)} CPU seconds\n`,
      );
      results.set(cell, run);
    }
    child.disconnect();
  };
  await Promise.all(Array.from({ length: Math.min(all.length, availableParallelism()) }, worker));
  return all.map((cell) => results.get(cell)!);
}

async function runInProcess(child: ChildProcess, cell: Cell): Promise<CellRun> {
  const stop = new AbortController();
  const exited = once(child, "exit", { signal: stop.signal }).then(([code]) => {
    throw new Error(`the process of ${cell.nodes} nodes, ${titleOf(cell)}, exited with code ${code}`);
  });
  exited.catch(() => undefined);
  const answered = once(child, "message") as Promise<[CellRun]>;
  child.send(cell);
  const [run] = await Promise.race([answered, exited]);
  stop.abort();
  return run;
}
