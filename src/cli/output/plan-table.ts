import { DAY_MS, type DurationMs, formatDuration, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { formatPercent } from "../../base/percent.ts";
import type { NetworkSize } from "../../collectors/polling-plan.ts";
import { COLLECTORS, type Collector } from "../../model/snapshot.ts";
import { pollingCallsPerMonth } from "../../rate-limit/limits.ts";
import type { Bound, CollectorPlan, Plan, PlanInput } from "../../scheduling/planner.ts";

/** Where the counts of what is polled are from: the command line, what a daemon saw last, or the service just now. */
export type CountSource = "options" | "state" | "service";

/** A plan, and what it was made of. */
export interface PlanReport {
  readonly extent: NetworkSize;
  readonly source: CountSource;
  readonly input: PlanInput;
  readonly plan: Plan;
  /** The plan is for a month from its beginning to its end; else for what is left of the one that it is. */
  readonly isFullMonth: boolean;
}

const MONTH_DAYS = 30;
const MINUTES_A_MONTH = (MONTH_DAYS * DAY_MS) / MINUTE_MS;

const ENDPOINTS: Readonly<Record<Collector, string>> = {
  nodes: "GET /v1/nodes",
  details: "GET /v1/nodes/{id}",
  sessions: "GET /v1/sessions",
  stats: "GET /v1/sessions/stats",
  hourly: "GET /v1/sessions/stats/hourly",
};

const SOURCE_TEXTS: Readonly<Record<CountSource, string>> = {
  options: "from the command line",
  state: "as last seen by the daemon",
  service: "as reported by the service",
};

/** Why no more is polled, in words. */
export const BOUND_TEXTS: Readonly<Record<Bound, string>> = {
  node_management: "limits.node_management",
  session_monitoring: "limits.session_monitoring",
  plan: "the plan's requests a minute",
  month: "the plan's calls a month",
};

/** The plan as a table for people. */
export function formatPlan({ extent, source, input, plan, isFullMonth: isWholeMonth }: PlanReport): string {
  const rows = COLLECTORS.map((collector) => [collector, ENDPOINTS[collector], ...cellsOf(plan[collector])]);
  const perMinute = totalOf(plan);
  const total = ["total", "", "", "", "", rate(perMinute), count(perMinute * MINUTES_A_MONTH), "", ""];
  const heads = [
    "collector",
    "endpoint",
    "wished",
    "planned",
    "stretch",
    "calls/min",
    "calls/30d",
    "age: median",
    "worst",
  ];
  const stretched = COLLECTORS.flatMap((collector) => slowdownText(collector, plan[collector], input));
  return [
    `network  ${count(extent.nodes)} nodes in ${pages(extent.nodePages)}, ${count(extent.sessions)} sessions in ${pages(extent.sessionPages)}, ${SOURCE_TEXTS[source]}`,
    `limits   ${limitsText(input)}`,
    `month    ${monthText(input, isWholeMonth)}`,
    "",
    ...alignColumns([heads, ...rows, total]),
    ...(stretched.length === 0 ? [] : ["", ...stretched]),
    "",
  ].join("\n");
}

/** The plan for scripts: in snake_case, durations in seconds. */
export function planToJson({ extent, source, input, plan, isFullMonth: isWholeMonth }: PlanReport): string {
  const { limits, month } = input;
  const collectors = COLLECTORS.map((collector) => {
    const planned = plan[collector];
    if (planned === null) return [collector, null];
    const { requestedMs: wishMs, intervalMs, slowdown: stretch, boundBy, callsPerMinute, age } = planned;
    return [
      collector,
      {
        endpoint: ENDPOINTS[collector],
        wish_seconds: wishMs / SECOND_MS,
        // JSON has no Infinity: nothing may be spent.
        interval_seconds: finite(intervalMs / SECOND_MS),
        stretch: finite(stretch),
        bound_by: boundBy,
        calls_per_minute: callsPerMinute,
        calls_per_month: callsPerMinute * MINUTES_A_MONTH,
        expected_age_seconds: { median: finite(age.medianMs / SECOND_MS), worst: finite(age.worstMs / SECOND_MS) },
      },
    ];
  });
  const shown = {
    network: {
      source,
      nodes: extent.nodes,
      node_pages: extent.nodePages,
      sessions: extent.sessions,
      session_pages: extent.sessionPages,
    },
    reserve: limits.reserve,
    month: {
      whole: isWholeMonth,
      calls: month.callsUsed,
      calls_limit: limits.plan.callsPerMonth,
      seconds_left: month.leftMs / SECOND_MS,
    },
    collectors: Object.fromEntries(collectors) as object,
    calls_per_minute: totalOf(plan),
    calls_per_month: totalOf(plan) * MINUTES_A_MONTH,
  };
  return `${JSON.stringify(shown, null, 2)}\n`;
}

function cellsOf(planned: CollectorPlan | null): string[] {
  if (planned === null) return ["not collected", "", "", "", "", "", ""];
  const { requestedMs: wishMs, intervalMs, slowdown: stretch, callsPerMinute, age } = planned;
  return [
    formatDurationCoarsely(wishMs),
    formatDurationCoarsely(intervalMs),
    Number.isFinite(stretch) ? `${stretch.toFixed(stretch < 10 ? 1 : 0)}x` : "-",
    rate(callsPerMinute),
    count(callsPerMinute * MINUTES_A_MONTH),
    formatDurationCoarsely(age.medianMs),
    formatDurationCoarsely(age.worstMs),
  ];
}

/** What keeps a collector from what it was asked to do; nothing where nothing does. */
function slowdownText(
  collector: Collector,
  planned: CollectorPlan | null,
  { requestedIntervals: wishes }: PlanInput,
): string[] {
  if (planned === null || planned.boundBy === null) return [];
  const { requestedMs: wishMs, intervalMs, callsPerMinute, boundBy, slowdown: stretch } = planned;
  if (!Number.isFinite(intervalMs)) return [`${collector}: not polled; ${BOUND_TEXTS[boundBy]} are used up`];
  const needed = rate(callsPerMinute * stretch);
  const grant = `${rate(callsPerMinute)} of the ${needed} calls/min that it would take`;
  if (wishes[collector]?.isCron === true) {
    return [
      `${collector}: ${skippedText(stretch)} of its cron schedule are skipped: within ${BOUND_TEXTS[boundBy]} it gets ${grant}`,
    ];
  }
  return [
    `${collector}: ${formatDurationCoarsely(wishMs)} is slowed down to ${formatDurationCoarsely(intervalMs)}: within ${BOUND_TEXTS[boundBy]} it gets ${grant}`,
  ];
}

/** How many of the times of a cron schedule the limits don't carry, such as `9 of 10 runs`. */
export const skippedText = (stretch: number): string => {
  const times = Math.max(2, Math.ceil(stretch - 1e-9));
  return `${times - 1} of ${times} runs`;
};

function limitsText({ limits }: PlanInput): string {
  const { categories, plan, reserve } = limits;
  const each = Object.entries(categories).map(
    ([category, { requests, windowMs }]) =>
      `${category} ${count(requests)} a ${windowMs === MINUTE_MS ? "minute" : formatDuration(windowMs)}`,
  );
  const ofPlan = plan.requestsPerMinute === null ? [] : [`the plan ${count(plan.requestsPerMinute)} a minute`];
  return `${[...each, ...ofPlan].join(", ")}; ${formatPercent(reserve)} of each is reserved for actions and other users of the key`;
}

function monthText({ limits, month }: PlanInput, isWholeMonth: boolean): string {
  const cap = limits.plan.callsPerMonth;
  const days = (month.leftMs / DAY_MS).toFixed(isWholeMonth ? 0 : 1);
  if (isWholeMonth) {
    const may = cap === null ? "the plan sets no limit" : `polling may make ${count(pollingCallsPerMonth(cap))} calls`;
    return `a full month of ${days} days; ${may}`;
  }
  const used = `${count(month.callsUsed)} calls used`;
  if (cap === null) return `${used}; the plan sets no limit`;
  const left = Math.max(0, pollingCallsPerMonth(cap) - month.callsUsed);
  return `${used} of ${count(cap)}; polling may make ${count(left)} more in the remaining ${days} days`;
}

const totalOf = (plan: Plan): number =>
  COLLECTORS.reduce((sum, collector) => sum + (plan[collector]?.callsPerMinute ?? 0), 0);

/** Columns side by side; numbers stand to the right, what comes before them to the left. */
function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const TEXT_COLUMNS = 2;
  return rows.map((row) =>
    row
      .map((cell, column) => (column < TEXT_COLUMNS ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
}

const count = (number: number): string => Math.round(number).toLocaleString("en");
const pages = (number: number): string => `${count(number)} ${number === 1 ? "page" : "pages"}`;
const rate = (perMinute: number): string => (perMinute < 10 ? perMinute.toFixed(2) : perMinute.toFixed(1));
const finite = (number: number): number | null => (Number.isFinite(number) ? number : null);

/** Below so long a length of time is said to so much. */
const ROUNDING_STEPS = [
  [10 * SECOND_MS, SECOND_MS / 10],
  [HOUR_MS, SECOND_MS],
  [DAY_MS, MINUTE_MS],
  [Number.POSITIVE_INFINITY, HOUR_MS],
] as const;

/** A length of time in its two largest units. */
function formatDurationCoarsely(duration: DurationMs): string {
  if (!Number.isFinite(duration)) return "never";
  const grain = ROUNDING_STEPS.find(([below]) => duration < below)![1];
  return formatDuration(Math.round(duration / grain) * grain);
}
