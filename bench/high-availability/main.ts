import { type DurationMs, SECOND_MS } from "../../src/base/duration.ts";
import { scriptOptions } from "../../test/harness/script-options.ts";
import { startPostgres } from "../../test/harness/servers/postgres-cluster.ts";
import { median } from "../bench-process.ts";
import { measureCommits } from "./commits.ts";
import { disturbances, measurePauses } from "./pauses.ts";

// `npm run bench:ha` measures how long remediation pauses when something fails, and what the journal in PostgreSQL
// costs.

const options = scriptOptions(
  {
    runs: { type: "string", default: "20" },
    /** Time runs this many times as fast. A busy machine needs a low speed. */
    speed: { type: "string", default: "5" },
    /** Number of kinds of failures that are measured at the same time. */
    parallel: { type: "string", default: "2" },
    only: { type: "string" },
  },
  ["runs", "speed", "parallel"],
);

const waiting = Object.keys(disturbances).filter((name) => options.only === undefined || name === options.only);
if (waiting.length === 0)
  throw new Error(`unknown failure ${options.only}; known are ${Object.keys(disturbances).join(", ")}`);
const names = [...waiting];
const pauses = new Map<string, readonly DurationMs[]>();
async function worker(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
    pauses.set(name, await measurePauses(name, Number(options.runs), Number(options.speed)));
}
await Promise.all(Array.from({ length: Number(options.parallel) }, worker));

const seconds = (ms: DurationMs): string => `${(ms / SECOND_MS).toFixed(0)} s`;
console.log(
  [
    `| failure | median | worst of ${options.runs} |`,
    "| --- | ---: | ---: |",
    ...names.map((name) => {
      const all = pauses.get(name)!;
      return `| ${name} | ${seconds(median(all))} | ${seconds(Math.max(...all))} |`;
    }),
  ].join("\n"),
);

const cluster = await startPostgres();
const { sqlite, postgres, roundTripsPerCall } = await measureCommits(cluster).finally(cluster.remove);
console.log(`
| journal | SQLite | PostgreSQL |
| --- | ---: | ---: |
| commits a second, one after another | ${sqlite.toFixed(0)} | ${postgres.toFixed(0)} |
| round trips to the database per call of the API | 0 | ${roundTripsPerCall.toFixed(3)} |`);
