import { writeFileSync } from "node:fs";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { scriptOptions } from "../../test/harness/script-options.ts";
import { type FleetSize, runDaemon, type ScaleResult } from "./daemon-run.ts";
import { performanceDocument, routesTable, scaleTable } from "./document.ts";

const SIZES: Readonly<Record<string, FleetSize>> = {
  "1k": { nodes: 1_000, sessions: 10_000 },
  "10k": { nodes: 10_000, sessions: 100_000 },
  "100k": { nodes: 100_000, sessions: 1_000_000 },
  "1m": { nodes: 1_000_000, sessions: 0 },
};

const DEFAULT_SIZES = "1k,10k,100k,1m";

const options = scriptOptions(
  {
    size: { type: "string", default: DEFAULT_SIZES },
    minutes: { type: "string", default: "10" },
  },
  ["minutes"],
);
const results: ScaleResult[] = [];
for (const name of options.size.split(",")) {
  const size = SIZES[name];
  if (size === undefined) throw new Error(`unknown size ${name}; known are ${Object.keys(SIZES).join(", ")}`);
  process.stderr.write(`${size.nodes.toLocaleString("en")} nodes …\n`);
  results.push(await runDaemon(size, Number(options.minutes) * MINUTE_MS));
}
console.log(`${scaleTable(results)}\n\n${routesTable(results)}`);
// A run of some sizes leaves the document as it is.
if (options.size === DEFAULT_SIZES) {
  const text = performanceDocument(results, Number(options.minutes));
  writeFileSync(new URL("../../docs/performance.md", import.meta.url), text);
}
