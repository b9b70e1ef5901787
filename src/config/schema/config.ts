import { z } from "zod";
import { byName } from "../../base/by-name.ts";
import type { DurationMs } from "../../base/duration.ts";
import { NODE_LABELS } from "../../model/node.ts";
import { endpoint } from "./http-client.ts";
import { safetySchema } from "./safety.ts";
import { serviceSchema } from "./service.ts";
import { intervalsSchema } from "./time-intervals.ts";
import {
  baseUrl,
  camelKeys,
  duration,
  exactlyOneOf,
  filePath,
  httpUrl,
  list,
  oneOf,
  policyGlobs,
  rejectDuplicateNames,
  rejectValue,
  section,
  share,
  text,
  valueKinds,
  wholeNumber,
} from "./value-types.ts";
import { webSection } from "./web.ts";

/** The limit of one category. The default burst is twice the requests (spec, section 8.2). */
const categoryLimit = (requests: number, meaning: string) =>
  section({
    requests: wholeNumber(1, 1_000_000).default(requests).describe("Requests in each window."),
    burst: wholeNumber(1, 2_000_000)
      .exactOptional()
      .describe("Largest number of requests at once; must be at least `requests`. Defaults to twice `requests`."),
    window: duration("1s", "1h").prefault("1m").describe("Length of the window."),
  })
    .transform((limit, context) => {
      const burst = limit.burst ?? 2 * limit.requests;
      if (burst < limit.requests) {
        rejectValue(context, burst, `must be at least requests, which is ${limit.requests}`, ["burst"]);
      }
      return { requests: limit.requests, burst, windowMs: limit.window };
    })
    .prefault({})
    .describe(meaning);

const PLAN_EXPECTED =
  "must be starter, business, enterprise, or a mapping (keys: requests_per_minute, concurrent_requests, calls_per_month)";

const planCap = (max: number) => wholeNumber(1, max).nullable().default(null);

const limitsSection = section({
  plan: z
    .union(
      [
        oneOf(["starter", "business", "enterprise"]),
        section({
          requests_per_minute: planCap(1_000_000).describe(
            "Maximum requests per minute across all categories; null if unlimited.",
          ),
          concurrent_requests: planCap(10_000).describe(
            "Maximum requests in flight at the same time; null if unlimited.",
          ),
          calls_per_month: planCap(10_000_000_000).describe("Maximum calls per month; null if unlimited."),
        }).transform((section) => camelKeys(section)),
      ],
      { error: PLAN_EXPECTED },
    )
    .prefault("business")
    .describe("Plan of the API key: its name, or its limits."),
  reserve: share(90)
    .prefault("20%")
    .describe(
      "Share of every window that polling leaves for other users of the API key; at least 12%, even if less is configured. Actions may use half of it.",
    ),
  month: section({
    starts_on: wholeNumber(1, 31)
      .default(1)
      .describe("Day of the month (UTC) on which the count of calls resets; in a shorter month, its last day."),
    used: wholeNumber(0, 10_000_000_000)
      .default(0)
      .describe("Calls made in the current month before the journal was created."),
  })
    .prefault({})
    .describe("Billing month of the plan."),
  node_management: categoryLimit(
    100,
    "Limit of the node endpoints. A lower limit in the service's headers takes precedence; a higher one does not.",
  ),
  session_monitoring: categoryLimit(
    500,
    "Limit of the session endpoints. A lower limit in the service's headers takes precedence; a higher one does not.",
  ),
})
  .prefault({})
  .describe("Limits of the service.");

/** The schedule of a collector: an interval, or a cron expression in UTC. */
export type Schedule =
  | { readonly kind: "every"; readonly intervalMs: DurationMs }
  | { readonly kind: "cron"; readonly expression: string };

const schedule = (defaultValue: { every: string } | { cron: string }, meaning: string) =>
  exactlyOneOf(["every", "cron"], {
    every: duration("1s", "7d").exactOptional().describe("Time from one start to the next."),
    cron: text("a cron expression of five or six fields", { name: "cron expression", check: "cron" })
      .exactOptional()
      .describe(
        "Cron expression in UTC. If both the day of the month and the day of the week are given, a day must match both, unlike in Vixie cron, where either is enough. Mutually exclusive with `every`. Runs that the limits don't allow are skipped.",
      ),
  })
    .transform(({ every, cron = "" }): Schedule => {
      return every === undefined ? { kind: "cron", expression: cron } : { kind: "every", intervalMs: every };
    })
    .prefault(defaultValue)
    .describe(meaning);

const collectSection = section({
  nodes: schedule({ every: "1m" }, "Walks of the node list, which read all its pages."),
  details: section({
    max_age: duration("1s", "365d")
      .prefault("15m")
      .describe("Maximum age of a node's details (CPU, memory and disk usage)."),
  })
    .prefault({})
    .describe("Reads of individual nodes, one call for each node."),
  sessions: schedule({ every: "1m" }, "Walks of the session list, which read all its pages."),
  stats: schedule({ every: "1m" }, "Reads of aggregate session statistics."),
  hourly: schedule({ cron: "2 * * * *" }, "Reads of hourly session statistics."),
})
  .prefault({})
  .describe(
    "How often data is collected. These are requested intervals: they become longer if the limits don't allow them.",
  );

/** PostgreSQL truncates longer names. */
const SCHEMA_NAME_BYTES_MAX = 63;

const exportSection = section({
  top_customers: wholeNumber(0, 1_000)
    .default(20)
    .describe('Number of customers with their own series; the others are summed as `customer_id="other"`.'),
  node_labels: list(oneOf(NODE_LABELS), `labels from ${NODE_LABELS.join(", ")}`, NODE_LABELS.length)
    .refine((labels) => new Set(labels).size === labels.length, "must not name a label twice")
    .default(["name", "country", "region", "version"])
    .describe("Labels of `proxynet_node_info` in addition to `node_id`."),
  deny: list(text("the name of a metric family", { name: "family", check: "family" }), "metric families", 200)
    .default([])
    .describe(
      "`proxynet_*` metric families that are not exported. Their data is not fetched unless something else needs it.",
    ),
  series_max: wholeNumber(1_000, 100_000_000)
    .default(2_000_000)
    .describe(
      "Maximum number of series of `proxynet_*` families. Above it, whole families are dropped, those with the most series first.",
    ),
})
  .transform(({ deny, ...section }) => ({ ...camelKeys(section), deny: new Set(deny) }))
  .prefault({})
  .describe("Exported metrics.");

const postgresSection = section({
  url_file: filePath().describe(
    "File that contains the URL: `postgres://user:password@host:5432/database?sslmode=verify-full`. `sslmode` is `disable` (the default), `require`, `verify-ca` or `verify-full`; `sslrootcert`, `sslcert` and `sslkey` name PEM files.",
  ),
  lease: duration("5s", "5m")
    .prefault("15s")
    .describe("Time after which another daemon takes over if the leader does not renew its lease."),
  schema: text("the name of a schema")
    .refine(
      (name) => new TextEncoder().encode(name).byteLength <= SCHEMA_NAME_BYTES_MAX,
      `must have at most ${SCHEMA_NAME_BYTES_MAX} bytes`,
    )
    .default("proxywarden")
    .describe("Schema of the tables. It is created if it does not exist."),
  instance: text("the name of this daemon")
    .exactOptional()
    .describe("Name by which the other daemons refer to this one while it leads. Defaults to its host name."),
  public_url: baseUrl("an http or https URL, such as http://proxywarden-1.example.net:9713", () => null)
    .exactOptional()
    .describe("URL at which operators reach this daemon. While it leads, the status pages of the others link to it."),
});

const stateSection = exactlyOneOf(["path", "postgres"], {
  path: text("the path of a folder", { name: "path", check: "path" })
    .exactOptional()
    .describe("Folder of the journal, in SQLite. Only one daemon can use it at a time."),
  postgres: postgresSection
    .exactOptional()
    .describe("PostgreSQL database of the journal. Several daemons can share it: one leads, and the others stand by."),
})
  .prefault({ path: "/var/lib/proxywarden" })
  .describe("State that survives a restart. Either `path` or `postgres`.");

const logSection = section({
  level: oneOf(["debug", "info", "warn", "error"]).default("info").describe("Lowest level that is logged."),
  format: oneOf(["json", "pretty"])
    .default("json")
    .describe("`json`: one JSON object per line; `pretty`: text for a terminal."),
})
  .prefault({})
  .describe("Log on standard error.");

const policies = policyGlobs()
  .default([])
  .describe(
    "Globs of policy files, relative to this file; `*` does not match names that begin with a dot. A glob that matches no file is an error. There may be at most 200 files, with at most 131,072 characters in total. If empty, the daemon exports metrics and takes no action.",
  );

const RECEIVERS_MAX = 100;

const WEBHOOK_URL = { name: "URL", secret: "the webhook URL" };

const onlyTrue = () => z.literal(true, { error: "must be true" }).register(valueKinds, { name: "true" });

const receiver = exactlyOneOf(["webhook_url", "webhook_url_file", "alertmanager", "log"], {
  name: text("a name").describe("Name of the receiver, for the notify steps of policies."),
  webhook_url: httpUrl("an http or https URL", () => null, WEBHOOK_URL)
    .exactOptional()
    .describe("URL to which notifications are posted as JSON."),
  webhook_url_file: filePath()
    .exactOptional()
    .describe("File that contains the URL. Mutually exclusive with `webhook_url`."),
  alertmanager: onlyTrue()
    .exactOptional()
    .describe("Sends notifications as alerts to the Alertmanager configured in the section `alertmanager`."),
  log: onlyTrue().exactOptional().describe("Writes notifications to the daemon's log. Needs no other server."),
});

const receivers = list(receiver, "receivers", RECEIVERS_MAX)
  .superRefine(rejectDuplicateNames)
  .default([])
  .describe(
    `Receivers of notifications, at most ${RECEIVERS_MAX}. A notify step notifies the receiver that it names; all other notifications go to all receivers.`,
  );

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
  prometheus: endpoint(9090, "Prometheus server for `blocked_by` queries and for the history of `policy backtest`."),
  alertmanager: endpoint(9093, "Alertmanager for `blocked_by` alerts and for notifications."),
  receivers,
});

/**
 * The whole configuration with types, defaults, ranges and descriptions. The reference and the JSON Schema are
 * generated from it.
 */
export const configSchema = sections.superRefine((config, context) => {
  config.receivers.forEach((receiver, index) => {
    if (receiver.alertmanager === undefined || config.alertmanager !== undefined) return;
    rejectValue(context, true, "needs the section alertmanager, with its url", ["receivers", index, "alertmanager"]);
  });
});

/** A configuration of which only the section `state` is used. Only the names of the other sections are checked. */
export const stateFileSchema = section({
  ...byName(Object.keys(sections.shape), () => z.unknown().optional()),
  state: stateSection,
});

/** A valid configuration. Durations are in milliseconds, shares 0 to 1. */
export type Config = z.output<typeof configSchema>;
