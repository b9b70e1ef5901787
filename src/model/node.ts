/** The node states of the spec, section 3.1, and `unknown` for a state that this version does not know. */
export const NODE_STATUSES = ["online", "offline", "quarantined", "rebooting", "maintenance", "unknown"] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];

/** Identifier of a node, as the service gives it (spec, section 2.1: prefix `node_`, nothing else is promised). */
export type NodeId = string;

/** A numeric field of a node: its name in the API, and what it holds there. A `time` becomes milliseconds since the epoch. */
interface NumberField {
  readonly field: string;
  readonly kind: "quantity" | "time";
}

/**
 * Numeric fields of both forms of a node (spec, section 2.1). The decoder, the inventory and the snapshot follow from these
 * rows: a new field is one row here and one in `metrics/families/node-families.ts`.
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

/** Numeric fields of the detail form alone. Usage is as the service wrote it: its scale is not in the spec. */
export const DETAIL_NUMBERS = {
  cpuUsage: { field: "cpu_usage", kind: "quantity" },
  memoryUsage: { field: "memory_usage", kind: "quantity" },
  diskUsage: { field: "disk_usage", kind: "quantity" },
  createdAtMs: { field: "created_at", kind: "time" },
  updatedAtMs: { field: "updated_at", kind: "time" },
} as const satisfies Record<string, NumberField>;
export type DetailNumber = keyof typeof DETAIL_NUMBERS;

/** Names of the rows, in their order. */
export const LISTED_NUMBER_NAMES = Object.keys(LISTED_NUMBERS) as readonly ListedNumber[];
export const DETAIL_NUMBER_NAMES = Object.keys(DETAIL_NUMBERS) as readonly DetailNumber[];

/** A node as the list endpoint shows it (spec, section 2.1). A field that is absent or null in the response is null. */
export interface NodeRecord extends Readonly<Record<ListedNumber, number | null>> {
  readonly id: NodeId;
  readonly name: string | null;
  readonly status: NodeStatus;
  /** Two-letter country code. */
  readonly country: string | null;
  readonly region: string | null;
  readonly ipAddress: string | null;
  readonly version: string | null;
}

/** A node as the single-node endpoint shows it (spec, section 2.1). */
export interface NodeDetail extends NodeRecord, Readonly<Record<DetailNumber, number | null>> {}

/** Labels that `proxynet_node_info` may carry in addition to the node's id. */
export const NODE_LABELS = ["name", "country", "region", "version", "ip_address"] as const;
export type NodeLabel = (typeof NODE_LABELS)[number];

/** The kinds of failure domains: groups of nodes that may fail together. */
export const FAILURE_DOMAINS = ["region", "country"] as const;
export type FailureDomain = (typeof FAILURE_DOMAINS)[number];

/** A number of nodes for each kind of failure domain; null: no limit. */
export type PerFailureDomain = Readonly<Record<FailureDomain, number | null>>;
