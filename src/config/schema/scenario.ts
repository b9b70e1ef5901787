import { formatDuration } from "../../base/duration.ts";
import { formatPercent } from "../../base/percent.ts";
import { ok, type Result } from "../../base/result.ts";
import {
  type ChurnRates,
  type FleetRates,
  LIMITER_KINDS,
  type ListOptions,
  NODE_ORDERS,
  type Ordering,
  SCOPES,
  type Scenario,
  SESSION_ORDERS,
  type ServiceOptions,
} from "../../model/scenario.ts";
import type { ConfigProblem } from "../diagnostics/problem.ts";
import type { YamlSource } from "../yaml/document.ts";
import { readYaml } from "../yaml-reader.ts";
import { faultSchema } from "./scenario-faults.ts";
import {
  booleanFlag,
  camelKeys,
  duration,
  durationOrNever,
  list,
  oneOf,
  section,
  share,
  text,
  wholeNumber,
} from "./value-types.ts";

/** Returns the schema of a scenario file with the given defaults. */
export function scenarioSchema(defaults: Scenario) {
  return section({
    seed: wholeNumber(0, 4_294_967_295)
      .default(defaults.seed)
      .describe("Random seed. The same seed produces the same events."),
    nodes: wholeNumber(0, 1_000_000).default(defaults.nodes).describe("Number of nodes."),
    sessions: wholeNumber(0, 10_000_000).default(defaults.sessions).describe("Average number of sessions at a time."),
    service: service(defaults.service),
    rates: rates(defaults.rates),
    churn: churn(defaults.churn),
    faults: list(faultSchema, "faults", 1_000)
      .default([...defaults.faults])
      .describe("Faults, in any order."),
    keys: list(apiKey, "API keys, each with its scopes", 100)
      .prefault(
        defaults.keys.map(({ key, scopes }) => ({ key, scopes: SCOPES.filter((scope) => scopes.includes(scope)) })),
      )
      .describe("API keys that the service accepts."),
  });
}

const apiKey = section({
  key: text("an API key").describe("API key."),
  scopes: list(oneOf(SCOPES), `scopes from ${SCOPES.join(", ")}`, SCOPES.length).describe("Scopes of the key."),
});

const service = (defaults: ServiceOptions) =>
  section({
    limiter: oneOf(LIMITER_KINDS).default(defaults.limiter).describe("Rate limit algorithm."),
    rate_limit_headers: oneOf(["category", "plan", "off"])
      .default(defaults.rateLimitHeaders)
      .describe("Which limit the X-RateLimit headers state; `off`: headers only on a 429."),
    first_page: oneOf([0, 1]).default(defaults.firstPage).describe("Number of the first page."),
    page_limit_default: wholeNumber(1, 10_000)
      .default(defaults.pageLimitDefault)
      .describe("Records per page if the request has no `limit`."),
    page_limit_max: wholeNumber(1, 100_000)
      .default(defaults.pageLimitMax)
      .describe("Maximum number of records per page."),
    page_limit_over: oneOf(["clamp", "reject"])
      .default(defaults.pageLimitOver)
      .describe("Response to a larger `limit`: fewer records, or a 4xx."),
    page_limit_echo: oneOf(["effective", "requested"])
      .default(defaults.pageLimitEcho)
      .describe("Whether a clamped page states the effective or the requested limit."),
    usage_scale: oneOf(["ratio", "percent"])
      .default(defaults.usageScale)
      .describe("Scale of cpu_usage, memory_usage and disk_usage."),
    detail_uptime: oneOf(["floored", "rounded", "exact"])
      .default(defaults.detailUptime)
      .describe("How a detail states `uptime_hours`: rounded down as in the list, rounded, or with decimals."),
    detail_location: oneOf(["same", "other_case"])
      .default(defaults.detailLocation)
      .describe("Whether a detail states `country` and `region` as the list does, or in lower and upper case."),
    created_at: oneOf(["creation", "boot", "request"])
      .default(defaults.createdAt)
      .describe("Whether `created_at` is the time of the node's creation, of its last boot or of the request."),
    quarantine_status: oneOf(["quarantined", "maintenance"])
      .default(defaults.quarantineStatus)
      .describe("Status of a quarantined node."),
    error_body: oneOf(["code", "nested", "text", "empty"])
      .default(defaults.errorBody)
      .describe("Body of error responses: `{error, message}`, `{error: {code, message}}`, text/plain, or none."),
    action_reply: oneOf(["success", "empty_object", "no_content"])
      .default(defaults.actionReply)
      .describe("Response to reboot and disconnect: a body like quarantine's, an empty object, or 204."),
    list_ended_sessions: booleanFlag()
      .default(defaults.listEndedSessions)
      .describe("Whether ended sessions stay in the list for a while."),
    plan: oneOf(["starter", "business", "enterprise"]).default(defaults.plan).describe("Plan of the account."),
    unknown_node_status: oneOf([404, 410, 400, 403])
      .default(defaults.unknownNodeStatus)
      .describe("Status of the response for a node that does not exist."),
    plan_cap_status: oneOf([429, 403])
      .default(defaults.planCapStatus)
      .describe("Status of the response to a call that exceeds the concurrency limit or the monthly limit."),
    compression: oneOf(["off", "accepted", "gzip", "br"])
      .default(defaults.compression)
      .describe("Compression of response bodies: none, gzip if `Accept-Encoding` names it, or always gzip or brotli."),
    token_bucket_reset: oneOf(["full", "next_token"])
      .default(defaults.tokenBucketReset)
      .describe("What X-RateLimit-Reset of a token bucket states: when it is full, or when it has a token."),
    node_list: listOptions(["joined", ...sortOrders(NODE_ORDERS)], defaults.nodeList).describe(
      "Behavior of the node list; `joined` is the order in which nodes joined the fleet.",
    ),
    session_list: listOptions(sortOrders(SESSION_ORDERS), defaults.sessionList).describe(
      "Behavior of the session list. Unless the list is ordered by `started_at`, all sessions are sorted for every page, which is only suitable for small networks.",
    ),
  })
    .transform((options): ServiceOptions => camelKeys(options))
    .prefault({})
    .describe("Behavior of the service that the API documentation does not specify.");

const sortOrders = <Field extends string>(fields: readonly Field[]): Ordering<Field>[] =>
  fields.flatMap((field): Ordering<Field>[] => [field, `-${field}`]);

const listOptions = <Order extends string>(orders: readonly Order[], defaults: ListOptions<Order>) =>
  section({
    order: oneOf<Order>(orders)
      .default(() => defaults.order)
      .describe("Order of the records: ascending by a field, or descending with a leading `-`."),
    records_max: wholeNumber(1, 10_000_000)
      .exactOptional()
      .describe("Pages that begin after this many records get 400. By default every page is served."),
    total_counts: oneOf(["list", "page"])
      .default(defaults.totalCounts)
      .describe("Whether `total` counts the records of the list or those of the page."),
    total_lag: duration("0s", "1h")
      .prefault(formatDuration(defaults.totalLagMs))
      .describe("Age of `total`: it counts the list as it was this long ago, to the second."),
    total_off_by: wholeNumber(-1_000_000, 1_000_000)
      .default(defaults.totalOffBy)
      .describe("Number added to `total`. The result is at least 0."),
    total_fixed: wholeNumber(0, 1_000_000_000_000)
      .exactOptional()
      .describe("Fixed value of `total`. Defaults to the actual number of records."),
  })
    .transform(
      (options): ListOptions<Order> => ({ recordsMax: defaults.recordsMax, ...camelKeys(options, "total_lag") }),
    )
    .prefault({});

const churn = (defaults: ChurnRates) =>
  section({
    join_every: timeOrNever(defaults.joinEveryMs, "Mean time between two nodes joining the fleet."),
    leave_every: timeOrNever(defaults.leaveEveryMs, "Mean time between two nodes leaving the fleet for good."),
    vanish_after_reboot: proportion(
      defaults.vanishAfterReboot,
      "Share of reboots after which the node leaves the fleet instead of coming back.",
    ),
    fail_after_reboot: proportion(
      defaults.failAfterReboot,
      "Share of the other reboots after which the node stays down until an operator repairs it.",
    ),
    vanish_for: timeOrNever(
      defaults.vanishForMs,
      "How long a node that left after a reboot stays away; `never`: it does not return.",
    ),
    reuse_ids: booleanFlag()
      .default(defaults.reuseIds)
      .describe("Whether a returning node is a different machine with the same id and a new `created_at`."),
  })
    .transform((rates): ChurnRates => camelKeys(rates, "join_every", "leave_every", "vanish_for"))
    .prefault({})
    .describe(
      "Nodes that join and leave. A new node has a new id. A node that left is in no list, and requests for it get `service.unknown_node_status`.",
    );

const rates = (defaults: FleetRates) =>
  section({
    fault_every: timeOrNever(defaults.faultEveryMs, "Mean time until a healthy node fails."),
    self_healing: proportion(
      defaults.selfHealing,
      "Share of failures that end without an action, within minutes. Crashes, a fifth of all failures, are not counted: the node reboots by itself.",
    ),
    incurable: proportion(defaults.incurable, "Share of the other failures that a reboot does not heal."),
    flapping: proportion(defaults.flapping, "Share of outages that come and go every few minutes."),
    reboot: duration("1s", "1h").prefault(formatDuration(defaults.rebootMs)).describe("Duration of a reboot."),
    maintenance_every: timeOrNever(
      defaults.maintenanceEveryMs,
      "Mean time between two scheduled maintenance windows of a node.",
    ),
    repair: timeOrNever(
      defaults.repairMs,
      "Mean time until an operator repairs a failure that does not end by itself.",
    ),
  })
    .transform((rates): FleetRates => camelKeys(rates, "fault_every", "reboot", "maintenance_every", "repair"))
    .prefault({})
    .describe("How often a node fails, and how its failures end (averages).");

const timeOrNever = (defaultMs: number, meaning: string) =>
  durationOrNever()
    .prefault(Number.isFinite(defaultMs) ? formatDuration(defaultMs) : "never")
    .describe(meaning);

const proportion = (defaultValue: number, meaning: string) =>
  share(100).prefault(formatPercent(defaultValue)).describe(meaning);

/** Reads a scenario file. Fails with every error in it. */
export function loadScenario(source: YamlSource, defaults: Scenario): Result<Scenario, readonly ConfigProblem[]> {
  const options = { check: () => [], resolvePath: (path: string) => path };
  const read = readYaml(scenarioSchema(defaults), source, options);
  return read.ok ? ok(read.value.value) : read;
}
