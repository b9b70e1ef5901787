import { z } from "zod";
import type { DurationMs } from "../../base/duration.ts";
import { NODE_LABELS } from "../../model/node.ts";
import { camelKeys } from "./camel-keys.ts";
import { endpoint } from "./http-client.ts";
import { safetySchema } from "./safety.ts";
import { serviceSchema } from "./service.ts";
import { intervalsSchema } from "./time-intervals.ts";
import {
  duration,
  exactlyOneOf,
  filePath,
  httpUrl,
  list,
  nonBlankText,
  oneOf,
  section,
  share,
  text,
  valueKinds,
  wholeNumber,
} from "./value-types.ts";
import { webSection } from "./web.ts";

/** One category's limit: the burst is twice the requests unless it is given (spec, section 8.2). */
const categoryLimit = (requests: number, meaning: string) =>
  section({
    requests: wholeNumber(1, 1_000_000).default(requests).describe("Requests a window."),
    burst: wholeNumber(1, 2_000_000)
      .exactOptional()
      .describe("Requests that a full bucket holds, at least `requests`. Unless given: twice `requests`."),
    window: duration("1s", "1h").prefault("1m").describe("Length of the window."),
  })
    .transform((limit, context) => {
      const burst = limit.burst ?? 2 * limit.requests;
      if (burst < limit.requests) {
        context.issues.push({
          code: "custom",
          message: `must be at least requests, which is ${limit.requests}`,
          path: ["burst"],
          input: limit.burst,
        });
      }
      return { requests: limit.requests, burst, windowMs: limit.window };
    })
    .prefault({})
    .describe(meaning);

const PLAN_EXPECTED =
  "must be starter, business, enterprise, or a mapping with keys among requests_per_minute, concurrent_requests, calls_per_month";

const planCap = (max: number) => wholeNumber(1, max).nullable().default(null);

const limitsSection = section({
  plan: z
    .union(
      [
        oneOf(["starter", "business", "enterprise"]),
        section({
          requests_per_minute: planCap(1_000_000).describe("Requests a minute over all categories; null: no cap."),
          concurrent_requests: planCap(10_000).describe("Requests in flight at once; null: no cap."),
          calls_per_month: planCap(10_000_000_000).describe("Calls a month; null: no cap."),
        }).transform((section) => camelKeys(section)),
      ],
      { error: PLAN_EXPECTED },
    )
    .prefault("business")
    .describe("The plan that the API key is on, by name, or its caps."),
  reserve: share(0, 90)
    .prefault("20%")
    .describe("Share of every window that polling leaves to other users of the key; actions may use it."),
  month: section({
    starts_on: wholeNumber(1, 31)
      .default(1)
      .describe("Day (UTC) on which calls_per_month begins anew; in a shorter month, its last day."),
    used: wholeNumber(0, 10_000_000_000)
      .default(0)
      .describe("Calls of the current month that were already used when the journal is new."),
  })
    .prefault({})
    .describe("The plan's month."),
  node_management: categoryLimit(100, "Limit of the node endpoints, where the service's headers don't state it."),
  session_monitoring: categoryLimit(500, "Limit of the session endpoints, where the service's headers don't state it."),
})
  .prefault({})
  .describe("The limits of the service.");

/** When a collector is due: at an interval, or at the times of a cron expression (UTC). */
export type Schedule =
  | { readonly kind: "every"; readonly intervalMs: DurationMs }
  | { readonly kind: "cron"; readonly expression: string };

const schedule = (defaultValue: { every: string } | { cron: string }, meaning: string) =>
  exactlyOneOf(
    section({
      every: duration("1s", "7d").exactOptional().describe("Interval from one start to the next."),
      cron: text("a cron expression of five or six fields", { name: "cron expression", check: "cron" })
        .exactOptional()
        .describe("When to start, in UTC. Instead of `every`. Runs that the limits can't carry are skipped."),
    }),
    "every",
    "cron",
  )
    .transform(({ every, cron = "" }): Schedule => {
      return every === undefined ? { kind: "cron", expression: cron } : { kind: "every", intervalMs: every };
    })
    .prefault(defaultValue)
    .describe(meaning);

const collectSection = section({
  nodes: schedule({ every: "1m" }, "Walk of the node list."),
  details: section({
    max_age: duration("1s", "365d").prefault("15m").describe("Age that a node's detail (cpu, memory, disk) may reach."),
  })
    .prefault({})
    .describe("Reading of single nodes, one call a node."),
  sessions: schedule({ every: "1m" }, "Walk of the session list."),
  stats: schedule({ every: "1m" }, "Aggregate session statistics."),
  hourly: schedule({ cron: "2 * * * *" }, "Hourly session statistics."),
})
  .prefault({})
  .describe(
    "What is collected how often. These are requested intervals: the plan slows down what the limits can't carry.",
  );

const exportSection = section({
  top_customers: wholeNumber(0, 1_000)
    .default(20)
    .describe('Customers that have a series of their own; the rest is summed as `customer_id="other"`.'),
  node_labels: list(oneOf(NODE_LABELS), `labels out of ${NODE_LABELS.join(", ")}`, NODE_LABELS.length)
    .refine((labels) => new Set(labels).size === labels.length, "must name no label twice")
    .default(["name", "country", "region", "version"])
    .describe("Labels of `proxynet_node_info` beside `node_id`."),
  deny: list(text("the name of a metric family", { name: "family", check: "family" }), "metric families", 200)
    .default([])
    .describe("Metric families left out: not rendered, and not fetched where nothing else needs them."),
  series_max: wholeNumber(1_000, 100_000_000)
    .default(2_000_000)
    .describe("Series exported at most. Over it the widest families are dropped whole, and counted."),
})
  .prefault({})
  .describe("What is exported.");

const stateSection = section({
  path: text("the path of a folder", { name: "path", check: "path" })
    .default("/var/lib/proxywarden")
    .describe("Folder of the journal. One daemon holds it at a time; a second one is refused."),
})
  .prefault({})
  .describe("What survives a restart.");

const logSection = section({
  level: oneOf(["debug", "info", "warn", "error"]).default("info").describe("The lowest level that is logged."),
  format: oneOf(["json", "pretty"])
    .default("json")
    .describe("`json`: one JSON object per line; `pretty`: text for a terminal."),
})
  .prefault({})
  .describe("The log, on standard error.");

const policies = list(
  nonBlankText("a glob of policy files", { name: "glob", check: "glob" }),
  "globs of policy files",
  20,
)
  .default([])
  .describe(
    "Globs of policy files, relative to this file; `*` leaves out names that begin with a dot. One that finds no file is an error. None: the daemon exports metrics and takes no action.",
  );

const RECEIVERS_MAX = 100;

const WEBHOOK_URL = { name: "URL", secret: "the webhook's URL" };

const receiver = exactlyOneOf(
  section({
    name: nonBlankText("a name", { name: "string" }).describe("Name, for the notify steps of policies."),
    webhook_url: httpUrl("an http or https URL", () => null, WEBHOOK_URL)
      .exactOptional()
      .describe("URL that notifications are posted to, as JSON."),
    webhook_url_file: filePath().exactOptional().describe("File that holds such a URL. Instead of `webhook_url`."),
    alertmanager: z
      .literal(true, { error: "must be true" })
      .register(valueKinds, { name: "true" })
      .exactOptional()
      .describe("Sends notifications as alerts to the Alertmanager in the section `alertmanager`."),
  }),
  "webhook_url",
  "webhook_url_file",
  "alertmanager",
);

const receivers = list(receiver, "receivers", RECEIVERS_MAX)
  .default([])
  .describe("Where notifications go: those of notify steps, and those about the fleet.");

const sections = section({
  service: serviceSchema,
  limits: limitsSection,
  collect: collectSection,
  export: exportSection,
  web: webSection,
  state: stateSection,
  log: logSection,
  policies,
  safety: safetySchema,
  time_intervals: intervalsSchema,
  prometheus: endpoint(9090, "The Prometheus that `blocked_by` queries."),
  alertmanager: endpoint(9093, "The Alertmanager that `blocked_by` queries, and that receivers notify."),
  receivers,
});

/** Reports every entry of a list that has the name of one before it. */
function rejectDuplicates(context: z.core.$RefinementCtx, key: string, entries: readonly { readonly name: string }[]) {
  entries.forEach(({ name }, index) => {
    const first = entries.findIndex((entry) => entry.name === name);
    if (first === index) return;
    const message = `must be a name of its own: ${key}[${first}] has it`;
    context.issues.push({ code: "custom", message, path: [key, index, "name"], input: name });
  });
}

/** The whole configuration: types, defaults, ranges and meanings. The reference and the JSON Schema come from it. */
export const configSchema = sections.superRefine((config, context) => {
  rejectDuplicates(context, "time_intervals", config.time_intervals);
  rejectDuplicates(context, "receivers", config.receivers);
  config.receivers.forEach((receiver, index) => {
    if (receiver.alertmanager === undefined || config.alertmanager !== undefined) return;
    const message = "must have an Alertmanager: the section alertmanager, with its url";
    context.issues.push({ code: "custom", message, path: ["receivers", index, "alertmanager"], input: true });
  });
});

/** A valid configuration. Durations are in milliseconds, shares 0 to 1. */
export type Config = z.output<typeof configSchema>;
