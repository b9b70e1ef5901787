import { scriptOptions } from "../test/harness/script-options.ts";
import { benchEvaluation, EVALUATION_CPU_MS_MAX, EVALUATION_GAP_MS_MAX, type EvaluationResult } from "./evaluation.ts";
import { benchExposition, type ExpositionResult, targets } from "./exposition.ts";
import { benchParsing, PARSING_RATIO_MAX, type ParsingResult } from "./parsing.ts";

const options = scriptOptions({ json: { type: "boolean" }, quick: { type: "boolean" } });
const sizes = options.quick ? [1_000, 10_000] : [1_000, 10_000, 100_000];

const results: ExpositionResult[] = [];
for (const nodes of sizes) {
  process.stderr.write(`exposition, ${nodes.toLocaleString("en")} nodes …\n`);
  results.push(await benchExposition(nodes, options.quick ?? false));
}
process.stderr.write("processing a page of 1,000 records …\n");
const parsing = benchParsing();
process.stderr.write("evaluating 20 policies on 100,000 nodes …\n");
const evaluation = await benchEvaluation();
console.log(
  options.json
    ? JSON.stringify({ exposition: results, parsing, evaluation }, null, 2)
    : `${markdown(results)}\n\n${parsingMarkdown(parsing)}\n\n${evaluationMarkdown(evaluation)}`,
);

function markdown(all: readonly ExpositionResult[]): string {
  const rows: readonly (readonly [string, keyof ExpositionResult])[] = [
    ["prom-client: set all values and render, ms", "promClientMs"],
    ["proxywarden: publish all values and render, ms", "textMs"],
    ["**speedup**", "speedup"],
    ["publish and render after a change of 5% of the nodes, spread over the list, ms", "scatteredTextMs"],
    ["render and compress after a change of all nodes, ms", "allMs"],
    ["the same after a change of 5% of the nodes, consecutive in the list, ms", "fewMs"],
    ["**share of the time for all nodes**", "fewShare"],
    ["the same after a change of 5% of the nodes, spread over the list, ms", "scatteredMs"],
    ["**share of the time for all nodes**", "scatteredShare"],
    ["**longest time the event loop is blocked, median of rounds, ms**", "gapMs"],
    ["the same, maximum of rounds (a major garbage collection), ms", "gapWorstMs"],
    ["gzip scrape from a bare server, ms", "bareScrapeMs"],
    ["gzip scrape, ms", "scrapeMs"],
    ["**ratio to the bare server**", "scrapeRatio"],
    ["gzip scrape right after all values changed, ms", "changedScrapeMs"],
    ["**ratio to the bare server**", "changedScrapeRatio"],
    ["prom-client: peak RSS, MB", "promClientRssMb"],
    ["**peak RSS, MB**", "rssMb"],
  ];
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line([
      "exposition, 12 series and 1 info series per node",
      ...all.map(({ nodes }) => `${nodes.toLocaleString("en")} nodes`),
    ]),
    line(["---", ...all.map(() => "---:")]),
    ...rows.map(([title, key]) => line([title, ...all.map((result) => cell(result, key))])),
  ].join("\n");
}

/** Formats a value and its target, if any. */
function cell(result: ExpositionResult, key: keyof ExpositionResult): string {
  const value = result[key];
  const target = targets[result.nodes]?.[key];
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  if (target === undefined) return value.toFixed(digits);
  const [sign, bound] = target;
  return withTarget(value.toFixed(digits), sign === "≥" ? value >= bound : value <= bound, sign, bound);
}

/** Formats a value with its target, and whether that is reached. */
function withTarget(value: string, isReached: boolean, sign: "≤" | "≥", bound: number): string {
  return `${value} (${isReached ? "reached" : "MISSED"}: ${sign} ${bound})`;
}

function parsingMarkdown(all: readonly ParsingResult[]): string {
  const rows = all.map(({ list, parseMs, processMs, ratio }) => {
    const result = withTarget(ratio.toFixed(2), ratio <= PARSING_RATIO_MAX, "≤", PARSING_RATIO_MAX);
    return `| ${list} | ${parseMs.toFixed(2)} | ${processMs.toFixed(2)} | ${result} |`;
  });
  return [
    "| page of 1,000 records | JSON.parse only, ms | from bytes to recorded values, ms | **ratio to JSON.parse** |",
    "| --- | ---: | ---: | ---: |",
    ...rows,
  ].join("\n");
}

function evaluationMarkdown(all: readonly EvaluationResult[]): string {
  const rows = all.map(({ share, cpuMs, gapMs }) => {
    // The targets are those for a few of the nodes.
    const cell = (value: number, max: number) =>
      share < 1 ? withTarget(value.toFixed(1), value <= max, "≤", max) : value.toFixed(1);
    return `| ${share * 100}% of the nodes | ${cell(cpuMs, EVALUATION_CPU_MS_MAX)} | ${cell(gapMs, EVALUATION_GAP_MS_MAX)} |`;
  });
  return [
    "| evaluation of 20 policies on 100,000 nodes | CPU, ms | **longest time the event loop is blocked, ms** |",
    "| --- | ---: | ---: |",
    ...rows,
  ].join("\n");
}
