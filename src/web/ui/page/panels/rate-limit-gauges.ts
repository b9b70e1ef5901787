import type { Budget, Category, Collector, Status } from "../api.ts";
import { bar, byId, createElement, createFiller, tick } from "../dom.ts";
import { formatCount, formatDuration, formatPercent, formatSlowdown, humanize } from "../format.ts";

/** Minimum slowdown that is shown. Smaller ones would be displayed as 1.0. */
const SLOWDOWN_SHOWN_MIN = 1.05;

const fillBudget = createFiller(byId("budget"));
const fillNote = createFiller(byId("budget-note"));
const fillFresh = createFiller(byId("fresh"));

/** Shows the remaining calls of each limit and of the month. */
export function showBudget(budget: Budget, now: number): void {
  const { month, plan } = budget;
  fillNote(budget.reserve, () => [`${formatPercent(budget.reserve)} kept in reserve`]);
  fillBudget(budget, () => {
    const rows = Object.entries(budget.categories).map(([name, category]) =>
      categoryRow(name, category, budget.reserve),
    );
    rows.push(monthRow(month, now));
    if (plan.requests_per_minute !== null) rows.push(planRow(plan.requests_per_minute, plan.concurrent_requests));
    return rows;
  });
}

function categoryRow(name: string, category: Category, reserve: number): HTMLElement {
  const limit = category.stated?.limit ?? category.configured.requests;
  const left = category.remaining_at_least;
  // A bucket holds more than one window if the service allows bursts.
  const full = Math.max(limit, category.configured.burst, left ?? 0);
  const share = left === null ? 0 : left / full;
  const { held_by, in_seconds } = category.next_poll;
  const delayed =
    in_seconds === null
      ? "no further call for polling, held by"
      : `next call in ${formatDuration(in_seconds)}, delayed by`;
  const next = held_by === null ? "the next call can be sent now" : `${delayed} ${humanize(held_by)}`;
  const { requests, burst, window_seconds } = category.configured;
  const window = window_seconds === 60 ? "minute" : formatDuration(window_seconds);
  const rate = `of ${formatCount(limit)} a ${window}${burst > requests ? `, burst ${formatCount(burst)}` : ""}`;
  const refused = category.consecutive_refusals > 0 ? `${category.consecutive_refusals} refused in a row · ` : "";
  return gaugeElement({
    name: humanize(name),
    value: left === null ? "not stated" : `${formatCount(left)} left`,
    note: `${rate} · ${refused}${next}`,
    share,
    tone: left !== null && left < reserve * limit ? "wait" : "good",
    label: left === null ? "not reported yet" : `${formatCount(left)} left ${rate}`,
    tick: [(reserve * limit) / full, "the reserve"],
  });
}

function monthRow({ started_at, ends_at, calls, calls_limit }: Budget["month"], now: number): HTMLElement {
  const [begin, end] = [Date.parse(started_at), Date.parse(ends_at)];
  const gone = (now - begin) / (end - begin);
  const ends = `ends in ${formatDuration((end - now) / 1_000)}`;
  if (calls_limit === null) {
    return gaugeElement({
      name: "month",
      value: `${formatCount(calls)} used`,
      note: `no limit · ${ends}`,
      share: 0,
      tone: "none",
      label: "no monthly limit",
      tick: null,
    });
  }
  const used = calls / calls_limit;
  return gaugeElement({
    name: "month",
    value: `${formatCount(calls_limit - calls)} left`,
    note: `${formatCount(calls)} of ${formatCount(calls_limit)} used · ${ends}`,
    share: 1 - used,
    tone: used > gone + 0.02 ? "wait" : "good",
    label: `${formatCount(calls_limit - calls)} of ${formatCount(calls_limit)} calls left`,
    tick: [1 - gone, "calls that an even pace would leave"],
  });
}

const planRow = (perMinute: number, concurrent: number | null): HTMLElement =>
  createElement(
    "p",
    { class: "muted plan" },
    `Plan: ${formatCount(perMinute)} requests a minute in total${concurrent === null ? "" : `, ${formatCount(concurrent)} at once`}.`,
  );

interface Gauge {
  readonly name: string;
  readonly value: string;
  readonly note: string;
  readonly share: number;
  readonly tone: "good" | "wait" | "bad" | "none";
  /** Text of the bar. */
  readonly label: string;
  readonly tick: readonly [share: number, title: string] | null;
}

function gaugeElement({ name, value, note, share, tone, label, tick: mark }: Gauge): HTMLElement {
  const meter = {
    role: "meter",
    "aria-label": name,
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * Math.min(1, Math.max(0, share))),
    "aria-valuetext": label,
    class: `tone-${tone}`,
  };
  return createElement(
    "div",
    { class: "gauge" },
    createElement("span", { class: "gauge-name" }, name),
    bar(share, meter, mark === null ? null : tick(...mark)),
    createElement("span", { class: "gauge-value" }, value),
    createElement("small", { class: "gauge-note muted" }, note),
  );
}

/** Share of the freshness limit above which data is shown as late. */
const LATE_AGE_SHARE = 0.53;

/** Shows the age of each collector's data and the planned age. */
export function showFreshness(status: Status): void {
  const nodes = status.nodes?.total ?? 0;
  fillFresh([status.collectors, nodes], () =>
    Object.entries(status.collectors).map(([name, collector]) => freshnessRow(name, collector, nodes)),
  );
}

function freshnessRow(
  name: string,
  { planned, age_seconds, nodes_read, failure }: Collector,
  nodes: number,
): HTMLElement {
  if (planned === null) {
    return gaugeElement({
      name,
      value: "off",
      note: "not collected",
      share: 0,
      tone: "none",
      label: "not collected",
      tick: null,
    });
  }
  const age = age_seconds?.max ?? null;
  const share = age === null ? 0 : age / planned.fresh_seconds;
  const slowdown =
    planned.stretch >= SLOWDOWN_SHOWN_MIN
      ? ` · slowed down ${formatSlowdown(planned.stretch)} by ${humanize(planned.bound_by ?? "the plan")}`
      : "";
  const problem = failure === null ? "" : `${humanize(failure.reason)}: ${failure.message} · `;
  const median =
    name === "details" && age_seconds !== null ? ` · median age ${formatDuration(age_seconds.median)}` : "";
  const read = nodes_read === null ? "" : `${formatCount(nodes_read)} of ${formatCount(nodes)} read · `;
  return gaugeElement({
    name,
    value: age === null ? "nothing yet" : formatDuration(age),
    note: `${read}${problem}every ${formatDuration(planned.interval_seconds)}${slowdown}${median}`,
    share,
    tone: failure !== null || share > 1 ? "bad" : share > LATE_AGE_SHARE ? "wait" : "good",
    label:
      age === null
        ? "nothing yet"
        : `${formatDuration(age)} old, ${read}every ${formatDuration(planned.interval_seconds)}`,
    tick: [planned.interval_seconds / planned.fresh_seconds, "one planned interval"],
  });
}
