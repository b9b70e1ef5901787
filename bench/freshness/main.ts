import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { allCells, type Cell, titleOf } from "./cell.ts";
import type { Contest } from "./contest.ts";
import { freshnessDocument } from "./document.ts";
import { KINDS, quantile } from "./finding.ts";
import { judgementTable, showingTables } from "./report.ts";
import { CONTENDERS, type Showing } from "./showing.ts";
import { judge } from "./targets.ts";

const { values: options } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    nodes: { type: "string" },
    plan: { type: "string" },
    conditions: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const seed = Number(options.seed);
const cells = allCells(seed)
  .filter(({ nodes }) => options.nodes === undefined || nodes === Number(options.nodes))
  .filter(({ terms }) => options.plan === undefined || terms === options.plan)
  .filter(({ conditions }) => options.conditions === undefined || conditions === options.conditions);
const contests = await playAll(cells);

if (options.json) console.log(JSON.stringify(contests.map(summary), null, 2));
else console.log(`seed ${seed}\n\n${judgementTable(contests)}\n\n${showingTables(contests)}`);
// A part of the cells, or another seed, is a look at them, and no new document.
if (cells.length === allCells(seed).length && seed === 1) {
  writeFileSync(new URL("../../docs/freshness.md", import.meta.url), freshnessDocument(contests, seed));
}
const missed = contests.flatMap(judge).filter(({ isReached }) => !isReached);
for (const { cell, target, value, bound } of missed) {
  console.error(`MISSED: ${cell.nodes} nodes, ${titleOf(cell)}: ${target} is ${value}, must be ${bound}`);
}
if (missed.length > 0) process.exitCode = 1;

/** A contest with two numbers for all latencies of a kind; null: more than half, or a twentieth, was not found. */
function summary({ cell, showings }: Contest) {
  const short = ({ latencies, ...rest }: Showing) => ({
    ...rest,
    latenciesMs: Object.fromEntries(
      KINDS.map((kind) => [kind, { median: quantile(latencies[kind], 0.5), p95: quantile(latencies[kind], 0.95) }]),
    ),
  });
  return { cell, showings: Object.fromEntries(CONTENDERS.map((name) => [name, short(showings[name])])) };
}

/** Plays the cells, as many at a time as there are processors; the longest begin first. */
async function playAll(all: readonly Cell[]): Promise<readonly Contest[]> {
  const waiting = all.toReversed();
  const played = new Map<Cell, Contest>();
  const player = async () => {
    const child = fork(new URL("./player.ts", import.meta.url), { serialization: "advanced" });
    for (let cell = waiting.shift(); cell !== undefined; cell = waiting.shift()) {
      const contest = await play(child, cell);
      process.stderr.write(
        `${cell.nodes.toLocaleString("en")} nodes, ${titleOf(cell)}: seed ${cell.seed}, ${contest.cpuSeconds.toFixed(1)} s of a processor\n`,
      );
      played.set(cell, contest);
    }
    child.disconnect();
  };
  await Promise.all(Array.from({ length: Math.min(all.length, availableParallelism()) }, player));
  return all.map((cell) => played.get(cell)!);
}

async function play(child: ChildProcess, cell: Cell): Promise<Contest> {
  const stop = new AbortController();
  const died = once(child, "exit", { signal: stop.signal }).then(([code]) => {
    throw new Error(`the player of ${cell.nodes} nodes, ${titleOf(cell)}, ended with code ${code}`);
  });
  died.catch(() => undefined);
  const answered = once(child, "message") as Promise<[Contest]>;
  child.send(cell);
  const [contest] = await Promise.race([answered, died]);
  stop.abort();
  return contest;
}
