import { byName } from "../../base/by-name.ts";
import { DAY_MS, type DurationMs, formatDuration, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { formatPercent } from "../../base/percent.ts";
import type { NetworkSize } from "../../collectors/polling-plan.ts";
import { COLLECTORS, type Collector } from "../../model/snapshot.ts";
import { pollingCallsPerMonth } from "../../rate-limit/limits.ts";
import type { CollectorPlan, Plan } from "../../scheduling/planner.ts";
import type { Bound, PlanInput } from "../../scheduling/polling-capacity.ts";
import { countNoun, formatCount, formatSlowdown } from "../../web/ui/page/format.ts";
import type { CountSource, GivenCounts } from "../network-size.ts";
import { alignColumns, formatLength } from "./text.ts";

/** A plan and its input. */
interface PlanReport {
  readonly size: NetworkSize;
  readonly given: GivenCounts;
  /** Source of the counts that were not given, or `options` if both were. */
  readonly source: CountSource;
  readonly input: PlanInput;
  readonly plan: Plan;
  /** Whether the plan is for a full month; otherwise it is for the rest of the current one. */
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

/** Texts that name the source of a size. */
export const SOURCE_TEXTS: Readonly<Record<CountSource, string>> = {
  options: "from the command line",
  state: "as last seen by the daemon",
  service: "as reported by the service",
};

/** Texts that name the limit that slows down a plan. */
export const BOUND_TEXTS: Readonly<Record<Bound, string>> = {
  node_management: "limits.node_management",
  session_monitoring: "limits.session_monitoring",
  plan: "the plan's requests per minute",
  month: "the plan's calls per month",
};

/** Number of leading columns that hold text. The others hold numbers. */
const TEXT_COLUMN_COUNT = 2;
const COLUMN_TITLES = "collector,endpoint,requested,planned,slowdown,calls/min,calls/30d,age: median,worst".split(",");

/** Formats the plan as a table. */
export function formatPlan(report: PlanReport): string {
  const { input, plan, isFullMonth } = report;
  const rows = COLLECTORS.map((collector) => [collector, ENDPOINTS[collector], ...cellsOf(plan[collector])]);
  const perMinute = totalOf(plan);
  const total = ["total", "", "", "", "", rate(perMinute), formatCount(perMinute * MINUTES_A_MONTH), "", ""];
  const slowed = COLLECTORS.flatMap((collector) => slowdownText(collector, plan[collector], input));
  return [
    `network  ${networkText(report)}`,
    `limits   ${limitsText(input)}`,
    `month    ${monthText(input, isFullMonth)}`,
    "",
    ...alignColumns([COLUMN_TITLES, ...rows, total], TEXT_COLUMN_COUNT),
    ...(slowed.length === 0 ? [] : ["", ...slowed]),
    "",
  ].join("\n");
}

function networkText({ size, given, source }: PlanReport): string {
  const sourceOf = (count: number | undefined) => SOURCE_TEXTS[count === undefined ? source : "options"];
  const [ofNodes, ofSessions] = [sourceOf(given.nodes), sourceOf(given.sessions)];
  const nodes = `${countNoun(size.nodes, "node")} in ${pages(size.nodePages)}`;
  const sessions = `${countNoun(size.sessions, "session")} in ${pages(size.sessionPages)}`;
  return ofNodes === ofSessions
    ? `${nodes}, ${sessions}, ${ofNodes}`
    : `${nodes}, ${ofNodes}; ${sessions}, ${ofSessions}`;
}

/** Returns the plan as JSON, with keys in snake_case and durations in seconds. */
export function planJson({ size, source, input, plan, isFullMonth }: PlanReport): object {
  const { limits, month } = input;
  const collectorJson = (collector: Collector) => {
    const planned = plan[collector];
    if (planned === null) return null;
    const { requestedMs, intervalMs, slowdown, boundBy, callsPerMinute, age } = planned;
    return {
      endpoint: ENDPOINTS[collector],
      requested_interval_seconds: requestedMs / SECOND_MS,
      // JSON has no Infinity, so this is null if no calls are left.
      interval_seconds: finite(intervalMs / SECOND_MS),
      slowdown: finite(slowdown),
      bound_by: boundBy,
      calls_per_minute: callsPerMinute,
      calls_per_month: callsPerMinute * MINUTES_A_MONTH,
      expected_age_seconds: { median: finite(age.medianMs / SECOND_MS), worst: finite(age.worstMs / SECOND_MS) },
    };
  };
  const { nodes, nodePages, sessions, sessionPages } = size;
  return {
    network: { source, nodes, node_pages: nodePages, sessions, session_pages: sessionPages },
    reserve: limits.reserve,
    month: {
      whole: isFullMonth,
      calls: month.callsUsed,
      calls_limit: limits.plan.callsPerMonth,
      seconds_left: month.leftMs / SECOND_MS,
    },
    collectors: byName(COLLECTORS, collectorJson),
    calls_per_minute: totalOf(plan),
    calls_per_month: totalOf(plan) * MINUTES_A_MONTH,
  };
}

function cellsOf(planned: CollectorPlan | null): string[] {
  if (planned === null) return ["not collected", "", "", "", "", "", ""];
  const { requestedMs, intervalMs, slowdown, callsPerMinute, age } = planned;
  return [
    intervalText(requestedMs),
    intervalText(intervalMs),
    Number.isFinite(slowdown) ? formatSlowdown(slowdown) : "-",
    rate(callsPerMinute),
    formatCount(callsPerMinute * MINUTES_A_MONTH),
    intervalText(age.medianMs),
    intervalText(age.worstMs),
  ];
}

/** Returns why a collector polls less often than requested, or an empty list if it does not. */
function slowdownText(
  collector: Collector,
  planned: CollectorPlan | null,
  { requestedIntervals }: PlanInput,
): string[] {
  if (planned === null || planned.boundBy === null) return [];
  const { requestedMs, intervalMs, callsPerMinute, boundBy, slowdown } = planned;
  if (!Number.isFinite(intervalMs)) return [`${collector}: not polled; ${BOUND_TEXTS[boundBy]} leave none for polling`];
  const needed = rate(callsPerMinute * slowdown);
  const grant = `${rate(callsPerMinute)} of the ${needed} calls/min that it needs`;
  const effect = requestedIntervals[collector]?.isCron
    ? `${skippedText(slowdown)} of its cron schedule are skipped`
    : `${intervalText(requestedMs)} is slowed down to ${intervalText(intervalMs)}`;
  return [`${collector}: ${effect}: within ${BOUND_TEXTS[boundBy]} it gets ${grant}`];
}

/** Formats how many runs of a cron schedule are skipped at a slowdown, such as `9 of 10 runs`. */
export const skippedText = (slowdown: number): string => {
  const times = Math.max(2, Math.ceil(slowdown - 1e-9));
  return `${times - 1} of ${times} runs`;
};

function limitsText({ limits }: PlanInput): string {
  const { categories, plan, reserve } = limits;
  const ofCategories = Object.entries(categories).map(
    ([category, { requests, windowMs }]) =>
      `${category} ${formatCount(requests)} a ${windowMs === MINUTE_MS ? "minute" : formatDuration(windowMs)}`,
  );
  const ofPlan = plan.requestsPerMinute === null ? [] : [`the plan ${formatCount(plan.requestsPerMinute)} a minute`];
  return `${[...ofCategories, ...ofPlan].join(", ")}; ${formatPercent(reserve)} of each is reserved for actions and other users of the key`;
}

function monthText({ limits, month }: PlanInput, isFullMonth: boolean): string {
  const cap = limits.plan.callsPerMonth;
  const days = (month.leftMs / DAY_MS).toFixed(isFullMonth ? 0 : 1);
  if (isFullMonth) {
    const may =
      cap === null ? "the plan sets no limit" : `polling may make ${formatCount(pollingCallsPerMonth(cap))} calls`;
    return `a full month of ${days} days; ${may}`;
  }
  const used = `${countNoun(month.callsUsed, "call")} used`;
  if (cap === null) return `${used}; the plan sets no limit`;
  const left = Math.max(0, pollingCallsPerMonth(cap) - month.callsUsed);
  return `${used} of ${formatCount(cap)}; polling may make ${formatCount(left)} more in the remaining ${days} days`;
}

const totalOf = (plan: Plan): number =>
  COLLECTORS.reduce((sum, collector) => sum + (plan[collector]?.callsPerMinute ?? 0), 0);

const pages = (number: number): string => countNoun(number, "page");
const rate = (perMinute: number): string => (perMinute < 10 ? perMinute.toFixed(2) : perMinute.toFixed(1));
const finite = (number: number): number | null => (Number.isFinite(number) ? number : null);

const intervalText = (duration: DurationMs): string => (Number.isFinite(duration) ? formatLength(duration) : "never");
