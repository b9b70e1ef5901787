import { formatDuration } from "../../base/duration.ts";
import { formatPercent } from "../../base/percent.ts";
import { ok, type Result } from "../../base/result.ts";
import {
  type ChurnRates,
  type FleetRates,
  type ListOptions,
  NODE_ORDERS,
  type Ordering,
  type Scenario,
  SESSION_ORDERS,
  type ServiceOptions,
} from "../../model/scenario.ts";
import type { ConfigProblem } from "../diagnostics/problem.ts";
import { readYaml } from "../schema-reader.ts";
import type { YamlSource } from "../yaml/document.ts";
import { camelKeys } from "./camel-keys.ts";
import { faultSchema } from "./scenario-faults.ts";
import {
  booleanFlag,
  duration,
  durationOrNever,
  list,
  oneOf,
  section,
  share,
  text,
  wholeNumber,
} from "./value-types.ts";

const SCOPES = ["nodes:read", "nodes:write", "sessions:read", "sessions:write"] as const;

/** Schema of a scenario file. Keys that are left out have the values of `defaults`. */
export function scenarioSchema(defaults: Scenario) {
  return section({
    seed: wholeNumber(0, 4_294_967_295)
      .default(defaults.seed)
      .describe("Seed of the simulation: the same seed gives the same events."),
    nodes: wholeNumber(0, 1_000_000).default(defaults.nodes).describe("Nodes of the fleet."),
    sessions: wholeNumber(0, 10_000_000).default(defaults.sessions).describe("Sessions at a time, on average."),
    service: service(defaults.service),
    rates: rates(defaults.rates),
    churn: churn(defaults.churn),
    faults: list(faultSchema, "faults", 1_000)
      .default([...defaults.faults])
      .describe("The faults, in any order."),
    keys: list(apiKey, "API keys, each with its scopes", 100)
      .prefault(
        defaults.keys.map(({ key, scopes }) => ({ key, scopes: SCOPES.filter((scope) => scopes.includes(scope)) })),
      )
      .describe("API keys that the service accepts (section 5)."),
  }).transform((read): Scenario => ({ ...read, faults: read.faults ?? defaults.faults }));
}

const apiKey = section({
  key: text("an API key", { name: "string" }).describe("The key."),
  scopes: list(oneOf(SCOPES), `scopes out of ${SCOPES.join(", ")}`, SCOPES.length).describe("What it grants."),
});

const service = (defaults: ServiceOptions) =>
  section({
    limiter: oneOf(["token_bucket", "fixed_window", "sliding_window"])
      .default(defaults.limiter)
      .describe("How requests are counted: the interface names limits, not the algorithm."),
    rate_limit_headers: oneOf(["category", "plan", "off"])
      .default(defaults.rateLimitHeaders)
      .describe("The limit that the X-RateLimit headers state; `off`: headers only on a 429."),
    first_page: oneOf([0, 1]).default(defaults.firstPage).describe("Number of the first page."),
    page_limit_default: wholeNumber(1, 10_000)
      .default(defaults.pageLimitDefault)
      .describe("Records a page where `limit` is not given."),
    page_limit_max: wholeNumber(1, 100_000).default(defaults.pageLimitMax).describe("Records a page at most."),
    page_limit_over: oneOf(["clamp", "reject"])
      .default(defaults.pageLimitOver)
      .describe("What a larger `limit` gets: fewer records, or a 4xx."),
    page_limit_echo: oneOf(["effective", "requested"])
      .default(defaults.pageLimitEcho)
      .describe("Whether a clamped page echoes the limit in force or the one asked for."),
    usage_scale: oneOf(["ratio", "percent"])
      .default(defaults.usageScale)
      .describe("Scale of cpu_usage, memory_usage and disk_usage."),
    error_body: oneOf(["code", "nested", "text", "empty"])
      .default(defaults.errorBody)
      .describe("Body of errors: `{error, message}`, `{error: {code, message}}`, text/plain, or none."),
    action_reply: oneOf(["success", "empty_object", "no_content"])
      .default(defaults.actionReply)
      .describe("Answer of reboot and disconnect: a body like quarantine's, an empty object, or 204."),
    list_ended_sessions: booleanFlag()
      .default(defaults.listEndedSessions)
      .describe("Whether sessions that ended stay in the list for a while."),
    plan: oneOf(["starter", "business", "enterprise"]).default(defaults.plan).describe("The plan (section 8.3)."),
    plan_cap_status: oneOf([429, 403])
      .default(defaults.planCapStatus)
      .describe("Status of a call over the concurrent or the monthly cap."),
    compression: oneOf(["off", "accepted", "gzip", "br"])
      .default(defaults.compression)
      .describe(
        "Compression of bodies: none, gzip where `Accept-Encoding` names it, or gzip or brotli whatever was asked for.",
      ),
    token_bucket_reset: oneOf(["full", "next_token"])
      .default(defaults.tokenBucketReset)
      .describe("Whether X-RateLimit-Reset of a token bucket names the moment it is full, or the next token."),
    node_list: listOptions(["joined", ...sortOrders(NODE_ORDERS)], defaults.nodeList).describe(
      "How the list of nodes is served; `joined` is the order in which nodes joined the fleet.",
    ),
    session_list: listOptions(sortOrders(SESSION_ORDERS), defaults.sessionList).describe(
      "How the list of sessions is served. By another field than `started_at`, every page sorts all sessions: for small networks.",
    ),
  })
    .transform((options): ServiceOptions => camelKeys(options))
    .prefault({})
    .describe("Behavior of the service that the interface leaves open.");

const sortOrders = <Field extends string>(fields: readonly Field[]): Ordering<Field>[] =>
  fields.flatMap((field): Ordering<Field>[] => [field, `-${field}`]);

const listOptions = <Order extends string>(orders: readonly Order[], defaults: ListOptions<Order>) =>
  section({
    order: oneOf<Order>(orders)
      .default(() => defaults.order)
      .describe("Order of the records: ascending by a field or, with `-` before it, descending."),
    records_max: wholeNumber(1, 10_000_000)
      .exactOptional()
      .describe("A page that begins after so many records gets 400. Unset: every page is served."),
    total_counts: oneOf(["list", "page"])
      .default(defaults.totalCounts)
      .describe("Whether `total` counts the records of the list or those of the page."),
    total_lag: duration("0s", "1h")
      .prefault(formatDuration(defaults.totalLagMs))
      .describe("`total` counts the list as it was so long ago, to the second."),
    total_off_by: wholeNumber(-1_000_000, 1_000_000)
      .default(defaults.totalOffBy)
      .describe("Added to `total`, which is never below 0."),
    total_fixed: wholeNumber(0, 1_000_000_000_000)
      .exactOptional()
      .describe("Stated as `total`, whatever the list holds. Unset: the count."),
  })
    .transform(
      (options): ListOptions<Order> => ({ recordsMax: defaults.recordsMax, ...camelKeys(options, "total_lag") }),
    )
    .prefault({});

const churn = (defaults: ChurnRates) =>
  section({
    join_every: durationOrNever()
      .prefault(durationOrNeverText(defaults.joinEveryMs))
      .describe("Mean time between two nodes joining the fleet."),
    leave_every: durationOrNever()
      .prefault(durationOrNeverText(defaults.leaveEveryMs))
      .describe("Mean time between two nodes leaving the fleet for good."),
    vanish_after_reboot: share(0, 100)
      .prefault(formatPercent(defaults.vanishAfterReboot))
      .describe("Share of reboots at whose end the node leaves the fleet instead of coming back up."),
    vanish_for: durationOrNever()
      .prefault(durationOrNeverText(defaults.vanishForMs))
      .describe("How long such a node is gone; `never`: it does not return."),
    reuse_ids: booleanFlag()
      .default(defaults.reuseIds)
      .describe("Whether a node that returns is another machine under the same id, with another `created_at`."),
  })
    .transform((rates): ChurnRates => camelKeys(rates, "join_every", "leave_every", "vanish_for"))
    .prefault({})
    .describe(
      "How the fleet changes. A new node has a new id; one that left is in no list, and every request about it gets 404.",
    );

const rates = (defaults: FleetRates) =>
  section({
    fault_every: durationOrNever()
      .prefault(durationOrNeverText(defaults.faultEveryMs))
      .describe("Mean time from healthy to a fault of one node."),
    self_healing: share(0, 100)
      .prefault(formatPercent(defaults.selfHealing))
      .describe("Share of faults that end without help, within minutes."),
    incurable: share(0, 100)
      .prefault(formatPercent(defaults.incurable))
      .describe("Share of the others that no reboot heals."),
    flapping: share(0, 100)
      .prefault(formatPercent(defaults.flapping))
      .describe("Share of outages that come and go every few minutes instead of staying."),
    reboot: duration("1s", "1h").prefault(formatDuration(defaults.rebootMs)).describe("How long a reboot takes."),
    maintenance_every: durationOrNever()
      .prefault(durationOrNeverText(defaults.maintenanceEveryMs))
      .describe("Mean time between two scheduled maintenances of a node."),
    repair: durationOrNever()
      .prefault(durationOrNeverText(defaults.repairMs))
      .describe("Mean time until an operator repairs a fault that no reboot heals."),
  })
    .transform((rates): FleetRates => camelKeys(rates, "fault_every", "reboot", "maintenance_every", "repair"))
    .prefault({})
    .describe("How often things happen to one node, on average.");

const durationOrNeverText = (every: number): string => (Number.isFinite(every) ? formatDuration(every) : "never");

/** Reads a scenario file. Fails with every error of the file, as {@link loadConfig} does. */
export function loadScenario(source: YamlSource, defaults: Scenario): Result<Scenario, readonly ConfigProblem[]> {
  const rules = { check: () => null, resolvePath: (path: string) => path };
  const read = readYaml(scenarioSchema(defaults), source, rules);
  return read.ok ? ok(read.value.value) : read;
}
