import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { type Cell, CREEP_ROUNDS, meansOf, SIZES, timetableOf, titleOf } from "./cell.ts";
import type { Contest } from "./contest.ts";
import { KINDS, type Kind, quantile } from "./finding.ts";
import { CONTENDERS, type Contender, type Showing } from "./showing.ts";
import { type Judgement, judge } from "./targets.ts";

const NAMES: Readonly<Record<Contender, string>> = {
  proxywarden: "**proxywarden**",
  even: "even",
  naive: "naive",
  oracle: "oracle",
};

const TITLES: Readonly<Record<Kind, string>> = {
  offline: "offline (lists show it)",
  creep: "usage creeps",
  signalled: "usage jumps as the node restarts",
  jump: "usage jumps without a sign",
};

/** The targets, a line each: also what the terminal shows. */
export function judgementTable(contests: readonly Contest[]): string {
  const lines = contests
    .flatMap(judge)
    .map(({ cell, target, value, bound, isReached }: Judgement) => [
      size(cell.nodes),
      titleOf(cell),
      target,
      bound,
      target.startsWith("calls ") && !target.includes("times") ? whole(value) : number(value),
      isReached ? "PASS" : "**MISSED**",
    ]);
  return table(["nodes", "plan", "target", "bound", "value", ""], [4], lines);
}

/** What each contender did, a table a size of fleet. */
export const showingTables = (contests: readonly Contest[]): string =>
  SIZES.flatMap((nodes) => {
    const ofSize = contests.filter(({ cell }) => cell.nodes === nodes);
    return ofSize.length === 0 ? [] : [`### ${size(nodes)} nodes`, showingTable(ofSize)];
  }).join("\n\n");

function showingTable(contests: readonly Contest[]): string {
  const head = [
    "plan",
    "who",
    ...KINDS.map((kind) => TITLES[kind]),
    "calls a minute",
    "429s a minute",
    "calls a month",
    "month lasts",
    "median age of details",
  ];
  const rows = contests.flatMap(({ cell, showings }) =>
    CONTENDERS.map((contender, index) => {
      const showing = showings[contender];
      return [
        index === 0 ? titleOf(cell) : "",
        NAMES[contender],
        ...KINDS.map((kind) => latencies(showing, kind, timetableOf(cell).lastsMs)),
        number(showing.callsAMinute),
        number(showing.refusedAMinute),
        whole(showing.callsAMonth),
        showing.sees < 1 ? `${duration(showing.sees * 30 * DAY_MS)} of 30 d` : "all of it",
        showing.medianAgeMs === null ? "–" : duration(showing.medianAgeMs),
      ];
    }),
  );
  return table(head, [2, 3, 4, 5, 6, 7, 8, 9, 10], rows);
}

/** What the cells are like. */
export function cellTable(cells: readonly Cell[]): string {
  const rows = cells.map((cell) => {
    const { rate, roundMs } = meansOf(cell);
    const { endMs, lastsMs } = timetableOf(cell);
    return [
      size(cell.nodes),
      titleOf(cell),
      number(rate),
      duration(roundMs),
      `${duration(CREEP_ROUNDS.min * roundMs)} to ${duration(CREEP_ROUNDS.max * roundMs)}`,
      duration(lastsMs),
      duration(endMs),
    ];
  });
  const head = ["nodes", "plan", "calls a minute that polling may spend", "even round", "a creep takes"];
  return table([...head, "faults last", "simulated"], [2, 3, 4, 5, 6], rows);
}

/** Over the whole month: who has spent its calls finds nothing any more. In brackets, what it was until then. */
function latencies({ latencies: all, sees }: Showing, kind: Kind, lastsMs: DurationMs): string {
  const text = (share: number) => {
    const value = quantile(all[kind], share);
    return Number.isFinite(value) ? duration(value) : `> ${duration(lastsMs)}`;
  };
  const both = `${text(0.5)} · ${text(0.95)}`;
  return sees < 0.5 ? `never (${both})` : both;
}

/** Three digits of the largest unit that fits. */
export function duration(ms: DurationMs): string {
  const units = [
    ["d", DAY_MS],
    ["h", HOUR_MS],
    ["min", MINUTE_MS],
    ["s", SECOND_MS],
  ] as const;
  const [unit, unitMs] = units.find(([, each]) => ms >= 2 * each) ?? (["s", SECOND_MS] as const);
  return `${number(ms / unitMs)} ${unit}`;
}

/** Three digits, or as many as a whole number has. */
function number(value: number): string {
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  return value >= 100 ? whole(value) : String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}

const whole = (value: number): string => Math.round(value).toLocaleString("en");
const size = (nodes: number): string => nodes.toLocaleString("en");

function table(head: readonly string[], right: readonly number[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, index) => (right.includes(index) ? "---:" : "---"));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
