import { NONE_STEPS, steps } from "./palette.ts";
import { bars, counts, stacked, stat, timeSeries } from "./panel.ts";
import { gained, rate, selector } from "./query.ts";

const quarter = { width: 6, height: 4 };
const third = { width: 8, height: 8 };

const used = selector("proxywarden_month_calls");
const limit = selector("proxywarden_month_calls_limit");
const reset = selector("proxywarden_month_reset_timestamp_seconds");

/** The API budget: limits, use, and what remains. */
export const budgetPanels = () => [...summaryPanels(), ...limitPanels(), ...requestPanels(), ...limiterPanels()];

const summaryPanels = () => [
  stat({
    ...quarter,
    title: "Monthly calls used",
    empty: "No monthly limit",
    description: "Used share of the monthly calls. No value if the plan has no monthly limit.",
    unit: "percentunit",
    queries: [{ expr: `max(${used} / ${limit})` }],
  }).thresholds(steps("green", [0.8, "orange"], [0.95, "red"])),
  stat({
    ...quarter,
    title: "Monthly calls left",
    empty: "No monthly limit",
    description: "Calls left for the rest of the month.",
    unit: "short",
    queries: [{ expr: `clamp_min(min(${limit} - ${used}), 0)` }],
  }).thresholds(steps("red", [1, "text"])),
  stat({
    ...quarter,
    title: "Month ends in",
    empty: "No calls counted yet",
    description: "Time until the count of monthly calls resets.",
    unit: "s",
    queries: [{ expr: `clamp_min(min(${reset} - time()), 0)` }],
  }).thresholds(steps("text")),
  stat({
    ...quarter,
    title: "Largest slowdown",
    description:
      "Planned interval divided by requested interval, maximum of all collectors. 1: the limits allow all requested intervals.",
    unit: "none",
    queries: [{ expr: `max(${selector("proxywarden_plan_stretch_ratio")})` }],
  })
    .decimals(1)
    .thresholds(steps("green", [1.5, "orange"], [4, "red"])),
];

const limitPanels = () => [
  timeSeries({
    ...third,
    title: "Monthly calls",
    empty: "No calls counted yet",
    description: "Calls made in the plan's month, and its limit.",
    unit: "short",
    queries: [
      { expr: used, legend: "made" },
      { expr: limit, legend: "limit" },
    ],
  }),
  timeSeries({
    ...third,
    title: "Requests remaining",
    empty: "The service stated no limit",
    description:
      "Requests remaining by category, as last reported by the service. Polling leaves the reserve unused; actions may use half of it.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_ratelimit_remaining"), legend: "{{category}}" }],
  }),
  bars({
    ...third,
    title: "Request limits",
    description:
      "Requests per window by category, as last reported by the service; `plan`: configured requests per minute. Effective: the limit learned from 429s, if a gateway in front of the service allows less.",
    unit: "none",
    queries: [
      { expr: selector("proxywarden_ratelimit_limit"), legend: "{{category}}", shape: "now" },
      {
        expr: `${selector("proxywarden_ratelimit_learned_limit")} or ${selector("proxywarden_ratelimit_limit")}`,
        legend: "{{category}}, effective",
        shape: "now",
      },
    ],
  }),
];

const requestPanels = () => [
  stacked({
    ...third,
    title: "Requests by endpoint",
    description: "Requests per minute to the management service.",
    unit: "reqpm",
    queries: [{ expr: `60 * sum by (endpoint) (${rate("proxywarden_api_requests_total")})`, legend: "{{endpoint}}" }],
  }),
  stacked({
    ...third,
    title: "Requests by status code",
    description: "Requests per minute by status code, or by the reason why there was no response.",
    unit: "reqpm",
    queries: [{ expr: `60 * sum by (code) (${rate("proxywarden_api_requests_total")})`, legend: "{{code}}" }],
  }),
  stacked({
    ...third,
    title: "Planned calls",
    description: "Planned calls per minute of each collector.",
    unit: "reqpm",
    queries: [{ expr: selector("proxywarden_plan_calls_per_minute"), legend: "{{collector}}" }],
  }),
];

const limiterPanels = () => [
  timeSeries({
    ...third,
    title: "External usage",
    empty: "No calls by other clients",
    description: "Calls per minute by other clients with the same key, as derived from the rate limit headers.",
    unit: "reqpm",
    queries: [{ expr: `60 * ${rate("proxywarden_foreign_calls_total")}`, legend: "{{category}}" }],
  }),
  timeSeries({
    ...third,
    title: "Calls waiting for a permit",
    description: "Average number of calls that wait for the rate limiter.",
    unit: "none",
    queries: [{ expr: rate("proxywarden_ratelimit_wait_seconds_total"), legend: "{{category}}" }],
  }),
  counts({
    ...third,
    title: "429 responses",
    description:
      "Responses with status 429. Possible causes: another client with the same key, limits that are lower than configured, a gateway with a limit of its own, or a bug.",
    queries: [{ ...gained("category", "proxywarden_ratelimit_exceeded_total"), legend: "{{category}}" }],
  }).thresholds(NONE_STEPS),
  timeSeries({
    ...third,
    title: "Window resets in",
    empty: "The service stated no limit",
    description:
      "Time until each category's window resets, by the service's clock. 0: it has reset since the last call.",
    unit: "s",
    queries: [
      {
        expr: `clamp_min(${selector("proxywarden_ratelimit_reset_timestamp_seconds")} - on (instance) group_left () (time() + ${selector("proxywarden_service_clock_skew_seconds")}), 0)`,
        legend: "{{category}}",
      },
    ],
  }),
  timeSeries({
    ...third,
    title: "Request duration",
    empty: "No request in the time range",
    description: "Request duration including the body, 95th percentile.",
    unit: "s",
    queries: [
      {
        expr: `histogram_quantile(0.95, sum by (endpoint, le) (${rate("proxywarden_api_request_duration_seconds_bucket")}))`,
        legend: "{{endpoint}}",
      },
    ],
  }),
];
