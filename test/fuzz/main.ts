import { scriptOptions } from "../harness/script-options.ts";
import { type CampaignResult, type FuzzFailure, runCampaign } from "./campaign.ts";
import { TARGETS } from "./targets.ts";

/** Longer inputs are truncated in the output. */
const INPUT_CHARACTERS_MAX = 4_000;
const MILLION = 1_000_000;

const values = scriptOptions(
  {
    cases: { type: "string", default: String(MILLION) },
    seed: { type: "string", default: "1" },
    target: { type: "string" },
    case: { type: "string" },
  },
  ["cases", "seed", "case"],
);
const [cases, seed] = [Number(values.cases), Number(values.seed)];
const targets = TARGETS.filter(({ name }) => values.target === undefined || values.target === name);
if (targets.length === 0)
  throw new Error(`unknown target; must be one of ${TARGETS.map(({ name }) => name).join(", ")}`);

function rangeOf(perMillion: number): { readonly from: number; readonly to: number } {
  if (values.case !== undefined) return { from: Number(values.case), to: Number(values.case) + 1 };
  return { from: 0, to: Math.max(1, Math.round(targets.length === 1 ? cases : (cases * perMillion) / MILLION)) };
}

function print({ target, cases, failures, heapGrowthBytes, tookMs }: CampaignResult): void {
  const micros = ((tookMs * 1_000) / Math.max(1, cases)).toFixed(0);
  const growth = (heapGrowthBytes / 1_048_576).toFixed(1);
  console.log(
    `${target}: ${cases} cases, ${failures.length} failed, ${(tookMs / 1_000).toFixed(1)} s, ${micros} µs per case, heap growth ${growth} MiB`,
  );
  for (const failure of failures) printFailure(failure);
}

function printFailure({ target, number, kind, detail, input, times }: FuzzFailure): void {
  const shown = input.length > INPUT_CHARACTERS_MAX ? `${input.slice(0, INPUT_CHARACTERS_MAX)}…` : input;
  console.log(`  ${kind} (${times} times): ${detail.replaceAll("\n", "\n  ")}\n  input: ${shown}`);
  console.log(`  replay: npm run fuzz -- --target ${target} --seed ${seed} --case ${number}`);
}

const results: CampaignResult[] = [];
for (const { name, module, perMillion } of targets) {
  const result = await runCampaign({ name, module, seed, ...rangeOf(perMillion) });
  print(result);
  results.push(result);
}
const failed = results.reduce((sum, { failures }) => sum + failures.length, 0);
const total = results.reduce((sum, { cases }) => sum + cases, 0);
console.log(`${total} cases of seed ${seed}, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
