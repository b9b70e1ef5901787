import type { Budget, Category, Collector, Status } from "../api.ts";
import { bar, byId, type Child, createElement, fill, tick } from "../dom.ts";
import {
  countNoun,
  formatCount,
  formatDuration,
  formatPercent,
  formatSlowdown,
  humanize,
  NOT_POLLING,
  standsBy,
} from "../format.ts";

/** Minimum slowdown that is shown. Smaller ones would be displayed as 1.0. */
const SLOWDOWN_SHOWN_MIN = 1.05;

type Limit = NonNullable<Category["next_poll"]["held_by"] | NonNullable<Collector["planned"]>["bound_by"]>;

/** What delays calls or slows down a collector, in words. */
const LIMIT_TEXTS: Readonly<Record<Limit, string>> = {
  rate_limited: "an earlier 429 or 5xx",
  learning: "a call in flight whose response shows the limit",
  learned: "a limit learned from 429s",
  remaining: "the limit that the service states",
  external_usage: "other users of the API key",
  pace: "even spacing of calls",
  node_management: "the node management limit",
  session_monitoring: "the session monitoring limit",
  plan: "the plan's requests per minute",
  concurrency: "the limit on concurrent requests",
  month: "the plan's calls per month",
};

/** Shows the remaining calls of each limit and of the month. */
export function showBudget(budget: Budget, now: number): void {
  const { month, plan, reserve } = budget;
  byId("budget-note").textContent = `${formatPercent(reserve)} kept in reserve`;
  const monthEnd = `ends in ${formatDuration((Date.parse(month.ends_at) - now) / 1_000)}`;
  fill(byId("budget"), [budget, monthEnd], () => [
    ...Object.entries(budget.categories).map(([name, category]) => categoryRow(name, category, reserve)),
    monthRow(month, monthEnd, now),
    planRow(plan),
  ]);
}

function categoryRow(name: string, category: Category, reserve: number): HTMLElement {
  const { requests, burst, window_seconds } = category.configured;
  const limit = category.stated?.limit ?? requests;
  const left = category.remaining_at_least;
  // A token bucket holds the calls of more than one window if the service allows bursts.
  const full = Math.max(limit, burst, left ?? 0);
  const { held_by, in_seconds } = category.next_poll;
  const delay = in_seconds === null ? "" : `in ${formatDuration(in_seconds)}, `;
  // A standby has no next call.
  const ready = in_seconds === null ? NOT_POLLING : "the next call can be sent now";
  const next = held_by === null ? ready : `next call ${delay}delayed by ${LIMIT_TEXTS[held_by]}`;
  const window = window_seconds === 60 ? "minute" : formatDuration(window_seconds);
  const rate = `${formatCount(limit)} a ${window}${burst > requests ? `, burst ${formatCount(burst)}` : ""}`;
  const refused =
    category.consecutive_refusals > 0 ? `${countNoun(category.consecutive_refusals, "call")} rejected in a row · ` : "";
  return gaugeElement({
    name: humanize(name),
    value: left === null ? "unknown" : `${formatCount(left)} left`,
    note: `${rate} · ${refused}${next}`,
    share: (left ?? 0) / full,
    tone: left !== null && left < reserve * limit ? "wait" : "good",
    label: left === null ? "unknown" : `${formatCount(left)} left, ${rate}`,
    mark: tick((reserve * limit) / full, "the reserve"),
  });
}

/** Share of the month's calls by which usage may exceed an even pace before the month is highlighted. */
const MONTH_SHARE_AHEAD_MAX = 0.02;

/** Creates the gauge of the month. `monthEnd` says when the month ends. */
function monthRow(month: Budget["month"], monthEnd: string, now: number): HTMLElement {
  const { started_at, ends_at, calls, calls_limit } = month;
  const [begin, end] = [Date.parse(started_at), Date.parse(ends_at)];
  const gone = (now - begin) / (end - begin);
  const name = "month";
  if (calls_limit === null) {
    return gaugeElement({ name, value: `${formatCount(calls)} used`, note: `no limit · ${monthEnd}` });
  }
  const used = calls / calls_limit;
  const left = formatCount(Math.max(0, calls_limit - calls));
  return gaugeElement({
    name,
    value: `${left} left`,
    note: `${formatCount(calls)} of ${formatCount(calls_limit)} used · ${monthEnd}`,
    share: 1 - used,
    tone: used > gone + MONTH_SHARE_AHEAD_MAX ? "wait" : "good",
    label: `${left} of ${formatCount(calls_limit)} calls left`,
    mark: tick(1 - gone, "calls that an even pace would leave"),
  });
}

/** Creates the line about limits on all calls together. Returns null if the plan has none. */
function planRow({ requests_per_minute: perMinute, concurrent_requests: concurrent }: Budget["plan"]): Child {
  const limits = [
    perMinute === null ? "" : `${formatCount(perMinute)} requests a minute in total`,
    concurrent === null ? "" : `${formatCount(concurrent)} requests at once`,
  ].filter(Boolean);
  return limits.length === 0 ? null : createElement("p.muted.plan", `Plan: ${limits.join(", ")}.`);
}

interface Gauge {
  readonly name: string;
  readonly value: string;
  readonly note: string;
  /** Length of the bar, which is empty if absent. */
  readonly share?: number;
  readonly tone?: "good" | "wait" | "bad";
  /** Text of the bar for screen readers. Absent means the note. */
  readonly label?: string;
  readonly mark?: HTMLElement;
}

function gaugeElement({ name, value, note, share = 0, tone, label = note, mark }: Gauge): HTMLElement {
  const meter = {
    role: "meter",
    "aria-label": name,
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * Math.min(1, Math.max(0, share))),
    "aria-valuetext": label,
  };
  return createElement(
    "div.gauge",
    createElement("span.gauge-name", name),
    bar(share, tone ?? "none", meter, mark ?? null),
    createElement("span.gauge-value", value),
    createElement("small.gauge-note.muted", note),
  );
}

/** Share of the freshness limit above which data is shown as late: usually 1.6 planned intervals. */
const LATE_AGE_SHARE = 0.53;

/** Shows the greatest age of each collector's data relative to its freshness limit, with a tick at one interval. */
export function showFreshness(status: Status): void {
  const { collectors, leader } = status;
  const nodes = status.nodes?.total ?? 0;
  const isStandby = standsBy(leader);
  fill(byId("fresh"), [collectors, nodes, isStandby], () =>
    Object.entries(collectors).map(([name, collector]) => freshnessRow(name, collector, nodes, isStandby)),
  );
}

function freshnessRow(name: string, collector: Collector, nodes: number, isStandby: boolean): HTMLElement {
  const { planned, age_seconds, nodes_read, failure } = collector;
  if (planned === null) {
    return gaugeElement({ name, value: "off", note: isStandby ? NOT_POLLING : "not collected" });
  }
  const age = age_seconds?.max ?? null;
  const share = age === null ? 0 : age / planned.fresh_seconds;
  const boundBy = planned.bound_by === null ? "" : ` by ${LIMIT_TEXTS[planned.bound_by]}`;
  const slowdown =
    planned.slowdown < SLOWDOWN_SHOWN_MIN ? "" : ` · slowed down ${formatSlowdown(planned.slowdown)}${boundBy}`;
  const problem = failure === null ? "" : `${humanize(failure.reason)}: ${failure.message} · `;
  const median =
    name === "details" && age_seconds !== null ? ` · median age ${formatDuration(age_seconds.median)}` : "";
  const read = nodes_read === null ? "" : `${formatCount(nodes_read)} of ${formatCount(nodes)} read · `;
  const every = `every ${formatDuration(planned.interval_seconds)}`;
  return gaugeElement({
    name,
    value: age === null ? "no data yet" : formatDuration(age),
    note: `${read}${problem}${every}${slowdown}${median}`,
    share,
    tone: failure !== null || share > 1 ? "bad" : share > LATE_AGE_SHARE ? "wait" : "good",
    label: age === null ? "no data yet" : `${formatDuration(age)} old, ${read}${every}`,
    mark: tick(planned.interval_seconds / planned.fresh_seconds, "one planned interval"),
  });
}
