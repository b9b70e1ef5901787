import { NONE_STEPS, steps } from "./palette.ts";
import { bars, stacked, stat, timeSeries } from "./panel.ts";
import { pick, rate } from "./query.ts";

const quarter = { width: 6, height: 4 };
const third = { width: 8, height: 8 };

const used = pick("proxywarden_month_calls");
const limit = pick("proxywarden_month_calls_limit");
const reset = pick("proxywarden_month_reset_timestamp_seconds");

/** What may be spent, what is, and what is left. */
export const budgetPanels = () => [
  stat({
    ...quarter,
    title: "Calls of the month",
    description: "Share of the plan's calls of this month that is spent. Absent where the plan sets no limit.",
    unit: "percentunit",
    queries: [{ expr: `max(${used} / ${limit})` }],
  }).thresholds(steps("green", [0.8, "orange"], [0.95, "red"])),
  stat({
    ...quarter,
    title: "Calls left",
    description: "Calls that the plan leaves for the rest of the month.",
    unit: "short",
    queries: [{ expr: `min(${limit} - ${used})` }],
  }).thresholds(steps("red", [1, "text"])),
  stat({
    ...quarter,
    title: "Month ends in",
    description: "When the calls of the month are counted from zero.",
    unit: "s",
    queries: [{ expr: `min(${reset} - time())` }],
  }).thresholds(steps("text")),
  stat({
    ...quarter,
    title: "Widest stretch",
    description:
      "By how much the plan stretches the interval that was wished for, at worst: 1 where the limits carry all wishes.",
    unit: "none",
    queries: [{ expr: `max(${pick("proxywarden_plan_stretch_ratio")})` }],
  })
    .decimals(1)
    .thresholds(steps("green", [1.5, "orange"], [4, "red"])),
  timeSeries({
    ...third,
    title: "The month",
    description: "Calls made in the month of the plan, and all that it allows.",
    unit: "short",
    queries: [
      { expr: used, legend: "made" },
      { expr: limit, legend: "limit" },
    ],
  }),
  timeSeries({
    ...third,
    title: "Left in the window",
    description:
      "Requests left in each category's window, as the service last stated. Polling leaves the reserve; actions may dip into it.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_ratelimit_remaining"), legend: "{{category}}" }],
  }),
  bars({
    ...third,
    title: "Allowed in a window",
    description:
      "Requests allowed in each category's window, as the service last stated; of `plan`, requests a minute as configured. Effective: the limit learned from refusals, where something in front of the service refuses sooner.",
    unit: "none",
    queries: [
      { expr: pick("proxywarden_ratelimit_limit"), legend: "{{category}}", shape: "now" },
      {
        expr: `${pick("proxywarden_ratelimit_learned_limit")} or ${pick("proxywarden_ratelimit_limit")}`,
        legend: "{{category}}, effective",
        shape: "now",
      },
    ],
  }),
  stacked({
    ...third,
    title: "Requests by endpoint",
    description: "Requests a minute to the management service.",
    unit: "reqpm",
    queries: [{ expr: `60 * sum by (endpoint) (${rate("proxywarden_api_requests_total")})`, legend: "{{endpoint}}" }],
  }),
  stacked({
    ...third,
    title: "Requests by answer",
    description: "Requests a minute by the status code of the answer, or why none came.",
    unit: "reqpm",
    queries: [{ expr: `60 * sum by (code) (${rate("proxywarden_api_requests_total")})`, legend: "{{code}}" }],
  }),
  stacked({
    ...third,
    title: "Planned calls",
    description: "Calls a minute that the plan gives each collector.",
    unit: "reqpm",
    queries: [{ expr: pick("proxywarden_plan_calls_per_minute"), legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Calls of others",
    description:
      "Calls a minute that others made with the same key, as far as what the service says is left proves them.",
    unit: "reqpm",
    queries: [{ expr: `60 * ${rate("proxywarden_foreign_calls_total")}`, legend: "{{category}}" }],
  }),
  timeSeries({
    ...third,
    title: "Calls waiting for their turn",
    description: "Calls that wait for the limits to let them go, on average.",
    unit: "none",
    queries: [{ expr: rate("proxywarden_ratelimit_wait_seconds_total"), legend: "{{category}}" }],
  }),
  timeSeries({
    ...third,
    title: "Refused for exceeded limits",
    description: "Answers with status 429. Anything but zero is a defect, or another user of the key.",
    unit: "none",
    queries: [
      { expr: `increase(${pick("proxywarden_ratelimit_exceeded_total")}[$__rate_interval])`, legend: "{{category}}" },
    ],
  }).thresholds(NONE_STEPS),
  timeSeries({
    ...third,
    title: "Window resets in",
    description:
      "Time until each category's window resets, on the clock of the service: never negative while calls are made.",
    unit: "s",
    queries: [
      {
        expr: `${pick("proxywarden_ratelimit_reset_timestamp_seconds")} - on (instance) group_left () (time() + ${pick("proxywarden_service_clock_skew_seconds")})`,
        legend: "{{category}}",
      },
    ],
  }),
  timeSeries({
    ...third,
    title: "How long requests take",
    description: "All but 5 % of the requests are answered within this, the whole body included.",
    unit: "s",
    queries: [
      {
        expr: `histogram_quantile(0.95, sum by (endpoint, le) (${rate("proxywarden_api_request_duration_seconds_bucket")}))`,
        legend: "{{endpoint}}",
      },
    ],
  }),
];
