import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { type Cell, CREEP_ROUNDS, pollingBudgetOf, SIZES, timetableOf, titleOf } from "./cell.ts";
import type { CellRun } from "./cell-run.ts";
import { DETECTION_KINDS, type DetectionKind, quantile } from "./detection.ts";
import { CONTENDERS, type Contender, type Result } from "./result.ts";
import { checkTargets, type TargetResult } from "./targets.ts";

const NAMES: Readonly<Record<Contender, string>> = {
  proxywarden: "**proxywarden**",
  even: "even",
  naive: "naive",
  oracle: "oracle",
};

const TITLES: Readonly<Record<DetectionKind, string>> = {
  offline: "offline",
  creep: "slow rise of usage",
  signalled: "jump of usage at a restart",
  jump: "jump of usage without a signal",
};

/** Formats the results of all targets. */
export function targetTable(runs: readonly CellRun[]): string {
  const lines = runs
    .flatMap(checkTargets)
    .map(({ cell, target, value, bound, isReached }: TargetResult) => [
      formatInteger(cell.nodes),
      titleOf(cell),
      target,
      bound,
      formatNumber(value),
      isReached ? "PASS" : "**MISSED**",
    ]);
  return table(["nodes", "plan", "target", "bound", "value", ""], [4], lines);
}

/** Formats the results of all contenders, with one table per size of fleet. */
export const resultTables = (runs: readonly CellRun[]): string =>
  SIZES.flatMap((nodes) => {
    const ofSize = runs.filter(({ cell }) => cell.nodes === nodes);
    return ofSize.length === 0 ? [] : [`### ${formatInteger(nodes)} nodes`, resultTable(ofSize)];
  }).join("\n\n");

function resultTable(runs: readonly CellRun[]): string {
  const head = [
    "plan",
    "contender",
    ...DETECTION_KINDS.map((kind) => TITLES[kind]),
    "calls a minute",
    "429s a minute",
    "calls a month",
    "month's calls last",
    "median age of details",
  ];
  const rows = runs.flatMap(({ cell, results }) =>
    CONTENDERS.map((contender, index) => {
      const result = results[contender];
      return [
        index === 0 ? titleOf(cell) : "",
        NAMES[contender],
        ...DETECTION_KINDS.map((kind) => latencies(result, kind, timetableOf(cell).lastsMs)),
        formatNumber(result.callsPerMinute),
        formatNumber(result.rejectedPerMinute),
        formatInteger(result.callsInMonth),
        result.monthShare < 1 ? `${duration(result.monthShare * 30 * DAY_MS)} of 30 d` : "all month",
        result.medianAgeMs === null ? "–" : duration(result.medianAgeMs),
      ];
    }),
  );
  return table(head, [2, 3, 4, 5, 6, 7, 8, 9, 10], rows);
}

/** Formats the parameters of the cells. */
export function cellTable(cells: readonly Cell[]): string {
  const rows = cells.map((cell) => {
    const { rate, roundMs } = pollingBudgetOf(cell);
    const { endMs, lastsMs } = timetableOf(cell);
    return [
      formatInteger(cell.nodes),
      titleOf(cell),
      formatNumber(rate),
      duration(roundMs),
      `${duration(CREEP_ROUNDS.min * roundMs)} to ${duration(CREEP_ROUNDS.max * roundMs)}`,
      duration(lastsMs),
      duration(endMs),
    ];
  });
  const head = ["nodes", "plan", "polling budget, calls a minute", "round of the even poller", "slow rises take"];
  return table([...head, "usage faults last", "simulated time"], [2, 3, 4, 5, 6], rows);
}

/**
 * Formats the median and the 95th percentile over the whole month: a contender with no calls left finds nothing more.
 */
function latencies({ latencies: all, monthShare }: Result, kind: DetectionKind, lastsMs: DurationMs): string {
  const text = (share: number) => {
    const value = quantile(all[kind], share);
    return Number.isFinite(value) ? duration(value) : `> ${duration(lastsMs)}`;
  };
  const both = `${text(0.5)} · ${text(0.95)}`;
  return monthShare < 0.5 ? `never (${both})` : both;
}

/** Formats a duration with up to three digits in the largest suitable unit. */
export function duration(ms: DurationMs): string {
  const units = [
    ["d", DAY_MS],
    ["h", HOUR_MS],
    ["min", MINUTE_MS],
    ["s", SECOND_MS],
  ] as const;
  const [unit, unitMs] = units.find(([, each]) => ms >= 2 * each) ?? (["s", SECOND_MS] as const);
  return `${formatNumber(ms / unitMs)} ${unit}`;
}

/** Formats a number with up to three significant digits, or as an integer from 100 on. */
function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  return value >= 100 ? formatInteger(value) : String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}

const formatInteger = (value: number): string => Math.round(value).toLocaleString("en");

function table(head: readonly string[], right: readonly number[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, index) => (right.includes(index) ? "---:" : "---"));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
