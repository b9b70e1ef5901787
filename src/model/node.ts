/** The node statuses of the spec (section 3.1), and `unknown` for any other. */
export const NODE_STATUSES = ["online", "offline", "quarantined", "rebooting", "maintenance", "unknown"] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];
/** The node statuses of the spec. */
export const KNOWN_STATUSES = NODE_STATUSES.filter((status) => status !== "unknown");

/** Identifier of a node, assigned by the service (spec, section 2.1: only the prefix `node_` is guaranteed). */
export type NodeId = string;
/** Every id has this prefix (spec, section 2.1). */
export const ID_PREFIX = "node_";

/**
 * Text fields of both forms of a node (spec, section 2.1), each with its name in the API, which is also its label name
 * in `proxynet_node_info`. The decoder, the inventory, the snapshot and the labels follow from these rows.
 */
export const LISTED_TEXTS = {
  name: "name",
  /** Two-letter country code. */
  country: "country",
  region: "region",
  version: "version",
  ipAddress: "ip_address",
} as const;
export type ListedText = keyof typeof LISTED_TEXTS;

/** Labels that `proxynet_node_info` may carry in addition to the node's id. */
export type NodeLabel = (typeof LISTED_TEXTS)[ListedText];
export const NODE_LABELS: readonly NodeLabel[] = Object.values(LISTED_TEXTS);

/**
 * A numeric field of a node: its name in the API and its kind. A `time` is converted to milliseconds since the Unix
 * epoch.
 */
export interface NumberField {
  readonly field: string;
  readonly kind: "quantity" | "time";
}

/**
 * Numeric fields of both forms of a node (spec, section 2.1). The decoder, the inventory and the snapshot follow from
 * these rows; the gauge is a row in `metrics/families/node-families.ts`.
 */
export const LISTED_NUMBERS = {
  /** On the service's clock. */
  lastSeenMs: { field: "last_seen", kind: "time" },
  /** Whole hours. */
  uptimeHours: { field: "uptime_hours", kind: "quantity" },
  activeSessions: { field: "active_sessions", kind: "quantity" },
  /** Gigabytes of 1e9 bytes. */
  bandwidthGb: { field: "bandwidth_gb", kind: "quantity" },
} as const satisfies Record<string, NumberField>;
export type ListedNumber = keyof typeof LISTED_NUMBERS;

/** Numeric fields of the detail form only. Usage is in the service's scale, which the spec does not define. */
export const DETAIL_NUMBERS = {
  cpuUsage: { field: "cpu_usage", kind: "quantity" },
  memoryUsage: { field: "memory_usage", kind: "quantity" },
  diskUsage: { field: "disk_usage", kind: "quantity" },
  createdAtMs: { field: "created_at", kind: "time" },
  updatedAtMs: { field: "updated_at", kind: "time" },
} as const satisfies Record<string, NumberField>;
export type DetailNumber = keyof typeof DETAIL_NUMBERS;

/** Names of the rows, in their order. */
export const LISTED_TEXT_NAMES = Object.keys(LISTED_TEXTS) as readonly ListedText[];
export const LISTED_NUMBER_NAMES = Object.keys(LISTED_NUMBERS) as readonly ListedNumber[];
export const DETAIL_NUMBER_NAMES = Object.keys(DETAIL_NUMBERS) as readonly DetailNumber[];

/** A node in list form (spec, section 2.1). A field that is absent or null in the response is null. */
export interface NodeRecord extends Readonly<Record<ListedText, string | null> & Record<ListedNumber, number | null>> {
  readonly id: NodeId;
  readonly status: NodeStatus;
}

/** A node in detail form (spec, section 2.1). */
export interface NodeDetail extends NodeRecord, Readonly<Record<DetailNumber, number | null>> {}

/** The kinds of failure domains: groups of nodes that may fail together. */
export const FAILURE_DOMAINS = ["region", "country"] as const;
export type FailureDomain = (typeof FAILURE_DOMAINS)[number];

/** A number of nodes for each kind of failure domain. Null means no limit. */
export type PerFailureDomain = Readonly<Record<FailureDomain, number | null>>;
