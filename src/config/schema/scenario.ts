import type { z } from "zod";
import { ok, type Result } from "../../base/result.ts";
import type { ConfigProblem } from "../diagnostics/problem.ts";
import { readYaml, type YamlSource } from "../yaml-reader.ts";
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

/** The ways in which the simulated service can count requests. The spec defines limits, but no algorithm. */
export const LIMITER_KINDS = [
  "token_bucket",
  "fixed_window",
  "first_call_window",
  "sliding_window",
  "sliding_counter",
] as const;

/** Fields by which the node list can be sorted, other than the order of joining. */
export const NODE_ORDERS = [
  "id",
  "name",
  "status",
  "country",
  "region",
  "ip_address",
  "version",
  "last_seen",
  "uptime_hours",
  "active_sessions",
  "bandwidth_gb",
  "created_at",
  "updated_at",
] as const;

/** Fields by which the session list can be sorted. */
export const SESSION_ORDERS = [
  "id",
  "customer_id",
  "node_id",
  "status",
  "started_at",
  "bytes_sent",
  "bytes_received",
] as const;

/** Scopes of an API key (spec, section 5). No endpoint of the spec requires `sessions:write`. */
const SCOPES = ["nodes:read", "nodes:write", "sessions:read", "sessions:write"] as const;

const apiKey = section({
  key: text("an API key").describe("API key."),
  scopes: list(oneOf(SCOPES), `scopes from ${SCOPES.join(", ")}`, SCOPES.length).describe("Scopes of the key."),
});

const service = section({
  limiter: oneOf(LIMITER_KINDS).default("token_bucket").describe("Rate limit algorithm."),
  instances: wholeNumber(1, 20)
    .default(1)
    .describe("Number of instances behind a load balancer, each of which applies the rate limits by itself."),
  rate_limit_headers: oneOf(["category", "plan", "off"])
    .default("category")
    .describe("Which limit the X-RateLimit headers state; `off`: headers only on a 429."),
  first_page: oneOf([0, 1]).default(1).describe("Number of the first page."),
  page_limit_default: wholeNumber(1, 10_000).default(50).describe("Records per page if the request has no `limit`."),
  page_limit_max: wholeNumber(1, 100_000).default(1_000).describe("Maximum number of records per page."),
  page_limit_over: oneOf(["clamp", "reject"])
    .default("clamp")
    .describe("Response to a larger `limit`: fewer records, or a 4xx."),
  page_limit_echo: oneOf(["effective", "requested"])
    .default("effective")
    .describe("Whether a clamped page states the effective or the requested limit."),
  pages_after_end: oneOf(["empty", "not_found", "rejected", "last"])
    .default("empty")
    .describe("Response to a page after the last one: no records, 404, 400, or the records of the last page."),
  usage_scale: oneOf(["ratio", "percent"])
    .default("ratio")
    .describe("Scale of cpu_usage, memory_usage and disk_usage."),
  detail_uptime: oneOf(["floored", "rounded", "exact"])
    .default("floored")
    .describe("How a detail states `uptime_hours`: rounded down as in the list, rounded, or with decimals."),
  uptime_since: oneOf(["boot", "creation"])
    .default("boot")
    .describe("Whether `uptime_hours` counts from the last boot, or from the creation of the node."),
  detail_location: oneOf(["same", "other_case"])
    .default("same")
    .describe(
      "Whether a detail states `country` and `region` as the list does, or in lower and upper case respectively.",
    ),
  created_at: oneOf(["creation", "boot", "request"])
    .default("creation")
    .describe("Whether `created_at` is the time of the node's creation, of its last boot or of the request."),
  quarantine_status: oneOf(["quarantined", "maintenance", "offline"])
    .default("quarantined")
    .describe("Status of a quarantined node."),
  quarantine_end: oneOf(["duration", "never"])
    .default("duration")
    .describe("Whether a quarantine ends after its duration, or never by itself."),
  quarantine_minutes_max: wholeNumber(1, 43_200)
    .default(43_200)
    .describe("Minutes after which a longer quarantine ends, although the response echoes the requested duration."),
  reboot_status: oneOf(["rebooting", "offline", "online"]).default("rebooting").describe("Status of a rebooting node."),
  booted_status: oneOf(["online", "starting"])
    .default("online")
    .describe(
      "Status of a node for a minute after it has booted or resumed responding; `starting` is not in the API documentation.",
    ),
  offline_values: oneOf(["last", "zero", "null"])
    .default("last")
    .describe("`uptime_hours` and usage of a node that is shown as offline or rebooting: the last values, 0 or null."),
  timestamps: oneOf(["milliseconds", "seconds", "offset", "other_zone", "no_zone"])
    .default("milliseconds")
    .describe(
      "Form of timestamps: UTC with `Z`, with or without milliseconds; with microseconds and `+00:00`; in the zone `+05:30`; or UTC without a zone.",
    ),
  last_seen_every: duration("0s", "1h")
    .prefault("0s")
    .describe(
      "Interval at which the service updates `last_seen`, which is rounded down to a multiple of the interval; `0s`: at every report of the node.",
    ),
  detail_last_seen_every: duration("0s", "1h")
    .prefault("0s")
    .describe("The same for details, which then may state an older `last_seen` than the list; `0s`: as in the list."),
  error_body: oneOf(["code", "nested", "text", "empty"])
    .default("code")
    .describe("Body of error responses: `{error, message}`, `{error: {code, message}}`, text/plain, or none."),
  action_reply: oneOf(["success", "empty_object", "no_content"])
    .default("success")
    .describe("Response to reboot and disconnect: a body like quarantine's, an empty object, or 204."),
  list_ended_sessions: booleanFlag().default(false).describe("Whether ended sessions stay in the list for a while."),
  plan: oneOf(["starter", "business", "enterprise"]).default("business").describe("Plan of the account."),
  unknown_node_status: oneOf([404, 410, 400, 403])
    .default(404)
    .describe("Status of the response for a node that does not exist."),
  plan_cap_status: oneOf([429, 403])
    .default(429)
    .describe("Status of the response to a call that exceeds the concurrency limit or the monthly limit."),
  compression: oneOf(["off", "accepted", "gzip", "br"])
    .default("off")
    .describe("Compression of response bodies: none, gzip if `Accept-Encoding` names it, or always gzip or brotli."),
  token_bucket_reset: oneOf(["full", "next_token"])
    .default("full")
    .describe("What X-RateLimit-Reset of a token bucket states: when it is full, or when it gets its next token."),
  rate_limit_reset: oneOf(["seconds", "milliseconds"])
    .default("seconds")
    .describe(
      "Unit of X-RateLimit-Reset, a time since the epoch. The API documentation says that it is a Unix timestamp.",
    ),
  node_list: listOptions(["joined", ...sortOrders(NODE_ORDERS)], "joined").describe(
    "Behavior of the node list; `joined` is the order in which nodes joined the fleet.",
  ),
  session_list: listOptions(sortOrders(SESSION_ORDERS), "started_at").describe(
    "Behavior of the session list. Unless the list is ordered by `started_at`, all sessions are sorted for every page, which is only suitable for small networks.",
  ),
})
  .transform((options) => camelKeys(options, "last_seen_every", "detail_last_seen_every"))
  .prefault({})
  .describe("Behavior of the service that the API documentation does not specify.");

/** Returns each field for ascending order, and with a leading `-` for descending order. */
function sortOrders<Field extends string>(fields: readonly Field[]) {
  return fields.flatMap((field) => [field, `-${field}`] as const);
}

function listOptions<Order extends string>(orders: readonly Order[], defaultOrder: NoInfer<Order>) {
  return section({
    order: oneOf<Order>(orders)
      .default(() => defaultOrder)
      .describe("Order of the records: ascending by a field, or descending with a leading `-`."),
    records_max: wholeNumber(1, 10_000_000)
      .exactOptional()
      .describe("Pages that begin after this many records get 400. By default every page is served."),
    total_counts: oneOf(["list", "page", "list_unless_empty"])
      .default("list")
      .describe(
        "Whether `total` counts the records of the list or those of the page; `list_unless_empty`: those of the list, but 0 on a page without records.",
      ),
    total_lag: duration("0s", "1h")
      .prefault("0s")
      .describe("Age of `total`: it counts the list as it was this long ago, to the second."),
    total_off_by: wholeNumber(-1_000_000, 1_000_000)
      .default(0)
      .describe("Number added to `total`. The result is at least 0."),
    total_fixed: wholeNumber(0, 1_000_000_000_000)
      .exactOptional()
      .describe("Fixed value of `total`. Defaults to the actual number of records."),
  })
    .transform((options) => ({ recordsMax: Number.POSITIVE_INFINITY, ...camelKeys(options, "total_lag") }))
    .prefault({});
}

const churn = section({
  join_every: durationOrNever().prefault("never").describe("Mean time between two nodes joining the fleet."),
  leave_every: durationOrNever().prefault("never").describe("Mean time between two nodes leaving the fleet for good."),
  vanish_after_reboot: share(100)
    .prefault("0%")
    .describe("Share of reboots after which the node leaves the fleet instead of coming back."),
  fail_after_reboot: share(100)
    .prefault("0%")
    .describe("Share of the other reboots after which the node stays down until an operator repairs it."),
  vanish_for: durationOrNever()
    .prefault("never")
    .describe("How long a node that left after a reboot stays away; `never`: it does not return."),
  reuse_ids: booleanFlag()
    .default(false)
    .describe(
      "Whether a returning node is a different machine with the same id, in another place, and with a new `created_at`.",
    ),
})
  .transform((rates) => camelKeys(rates, "join_every", "leave_every", "vanish_for"))
  .prefault({})
  .describe(
    "Nodes that join and leave. A new node has a new id. A node that left is in no list, and requests for it get `service.unknown_node_status`.",
  );

const rates = section({
  fault_every: durationOrNever().prefault("30d").describe("Mean time until a healthy node fails."),
  self_healing: share(100)
    .prefault("50%")
    .describe(
      "Share of failures that end without an action, within minutes. Crashes, a fifth of all failures, are not counted: the node reboots by itself.",
    ),
  incurable: share(100).prefault("10%").describe("Share of the other failures that a reboot does not heal."),
  flapping: share(100).prefault("20%").describe("Share of outages that come and go every few minutes."),
  reboot: duration("1s", "1h").prefault("2m").describe("Duration of a reboot."),
  maintenance_every: durationOrNever()
    .prefault("30d")
    .describe("Mean time between two scheduled maintenance windows of a node."),
  repair: durationOrNever()
    .prefault("12h")
    .describe("Mean time until an operator repairs a failure that does not end by itself."),
})
  .transform((rates) => camelKeys(rates, "fault_every", "reboot", "maintenance_every", "repair"))
  .prefault({})
  .describe("How often a node fails, and how its failures end (averages).");

/** A scenario file with types, defaults, ranges and descriptions. The default is a calm network without faults. */
export const scenarioSchema = section({
  seed: wholeNumber(0, 4_294_967_295).default(1).describe("Random seed. The same seed produces the same events."),
  nodes: wholeNumber(0, 1_000_000).default(500).describe("Number of nodes."),
  sessions: wholeNumber(0, 10_000_000).default(5_000).describe("Average number of sessions at a time."),
  service,
  rates,
  churn,
  faults: list(faultSchema, "faults", 1_000).default([]).describe("Faults, in any order."),
  keys: list(apiKey, "API keys, each with its scopes", 100)
    .prefault([{ key: "simulation-key", scopes: [...SCOPES] }])
    .describe("API keys that the service accepts."),
});

type ScenarioFile = z.output<typeof scenarioSchema>;

/** A simulated network, the service in front of it, and the faults. Everything is determined by `seed`. */
export interface Scenario extends Readonly<Omit<ScenarioFile, "faults" | "keys">> {
  readonly faults: readonly Fault[];
  readonly keys: readonly { readonly key: string; readonly scopes: readonly string[] }[];
}
/** Every choice that the spec leaves open. The client must work with each of them. */
export type ServiceOptions = Scenario["service"];
/** How one of the lists is served. */
export type ListOptions<Order extends string> = z.output<ReturnType<typeof listOptions<Order>>>;
/** How the service counts requests. */
export type LimiterKind = ServiceOptions["limiter"];
/** How often a simulated node fails, on average; Infinity means never. */
export type FleetRates = Scenario["rates"];
/** How the fleet changes while the simulation runs. */
export type ChurnRates = Scenario["churn"];
/** One fault, and when it begins and ends. */
export type Fault = ScenarioFile["faults"][number];
/** What a fault does to the requests that it matches, or to the network. */
export type FaultKind = Fault["fault"];
/** The response for a node whose details can't be read. */
export type BadDetail = Extract<FaultKind, { kind: "bad_details" }>["answer"];
/** A scope of an API key. */
export type Scope = (typeof SCOPES)[number];

/** Reads a scenario file. Fails with every error in it. */
export function loadScenario(source: YamlSource): Result<Scenario, readonly ConfigProblem[]> {
  const read = readYaml(scenarioSchema, source, () => []);
  return read.ok ? ok(read.value.value) : read;
}
