/** The node states of the spec, section 3.1, and `unknown` for a state that this version does not know. */
export const NODE_STATUSES = ["online", "offline", "quarantined", "rebooting", "maintenance", "unknown"] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];

/** Identifier of a node, as the service gives it (spec, section 2.1: prefix `node_`, nothing else is promised). */
export type NodeId = string;

/** A node as the list endpoint shows it (spec, section 2.1). A field that was absent or null in the answer is null. */
export interface NodeRecord {
  readonly id: NodeId;
  readonly name: string | null;
  readonly status: NodeStatus;
  /** Two-letter country code. */
  readonly country: string | null;
  readonly region: string | null;
  readonly ipAddress: string | null;
  readonly version: string | null;
  /** Milliseconds since the Unix epoch, on the service's clock. */
  readonly lastSeenMs: number | null;
  /** Whole hours. */
  readonly uptimeHours: number | null;
  readonly activeSessions: number | null;
  /** Gigabytes of 1e9 bytes. */
  readonly bandwidthGb: number | null;
}

/** A node as the single-node endpoint shows it. Usage is as the service wrote it: its scale is not in the spec. */
export interface NodeDetail extends NodeRecord {
  readonly cpuUsage: number | null;
  readonly memoryUsage: number | null;
  readonly diskUsage: number | null;
  readonly createdAtMs: number | null;
  readonly updatedAtMs: number | null;
}
