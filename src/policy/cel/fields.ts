import type { Steps } from "../../base/steps.ts";
import type { Usage } from "../../model/policy/policy.ts";
import type { SessionStatus } from "../../model/session.ts";
import type { Collector } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import {
  type AggregateScope,
  aggregateCount,
  aggregateMedian,
  type FieldReader,
  failedSessionCount,
  failedSessionShare,
  listText,
  locationText,
  nodeNumber,
  nodeStatus,
  recordTime,
  type ScopeData,
  sessionCount,
  sessionTotal,
  timestamp,
  usage,
} from "./field-readers.ts";

/** Type of a field in CEL. A timestamp is read as milliseconds since the Unix epoch on the service's clock. */
export type FieldType = "string" | "int" | "double" | "timestamp";

/**
 * The values that a field can have: for `status` the node statuses of the spec, for `country` two letters, for
 * `node_id` texts that begin with node_, for `ratio` numbers from 0 to 1, and for null any value. A comparison with any
 * other value would always or never hold, so it is rejected.
 */
export type FieldRange = "status" | "country" | "node_id" | "ratio" | null;

/** A value of a node, its sessions, its region or the fleet that expressions can read. */
export interface Field {
  /** Its name in expressions. */
  readonly name: string;
  readonly type: FieldType;
  /** The collector that reads it, whose max_age applies. */
  readonly source: Extract<Collector, "nodes" | "details" | "sessions">;
  readonly read: FieldReader;
  /** The steps that compute for all nodes what {@link read} needs, if that takes long for a large fleet. */
  readonly prepare?: (data: ScopeData, freshFrom: MonotonicMs) => Steps<void>;
  /** What it means, in one sentence. */
  readonly help: string;
  readonly range: FieldRange;
  /** Whether it is known only while a usage scale is declared and no value has contradicted it. */
  readonly isUsage: boolean;
}

const row = (
  name: string,
  type: FieldType,
  source: Field["source"],
  read: FieldReader,
  help: string,
  range: FieldRange = null,
): Field => ({ name, type, source, read, help, range, isUsage: false });

const usageRow = (name: string, read: FieldReader, help: string): Field => ({
  ...row(name, "double", "details", read, help, "ratio"),
  isUsage: true,
});

const sessionRow = (status: SessionStatus, read: (status: SessionStatus) => FieldReader, help: string): Field =>
  row(`sessions.${status}`, "int", "sessions", read(status), help);

const STATUS_HELP = "Status of the node; missing if this version of proxywarden does not know it.";
const IF_STATES_KNOWN = "missing while the status of any session of the node is unknown";
const UNKNOWN_NOTE = "see [unknown fields](#unknown-fields)";
const TOTAL_HELP = `Sessions of the node, including those that ended in the last five minutes; 0 if there are none; ${UNKNOWN_NOTE}.`;

const nodeRows = [
  row("node.id", "string", "nodes", listText("ids"), "Identifier of the node.", "node_id"),
  row("node.name", "string", "nodes", listText("name"), "Name of the node."),
  row("node.status", "string", "nodes", nodeStatus, STATUS_HELP, "status"),
  row("node.country", "string", "nodes", locationText("country"), "Two-letter country code.", "country"),
  row("node.region", "string", "nodes", locationText("region"), "Region label."),
  row("node.ip_address", "string", "nodes", listText("ipAddress"), "IP address of the node."),
  row("node.version", "string", "nodes", listText("version"), "Software version of the node."),
  row("node.last_seen", "timestamp", "nodes", timestamp("lastSeenMs"), "When the service last saw the node."),
  row("node.uptime_hours", "int", "nodes", nodeNumber("uptimeHours"), "Whole hours of uptime."),
  row("node.active_sessions", "int", "nodes", nodeNumber("activeSessions"), "Sessions according to the node's record."),
  row("node.bandwidth_gb", "double", "nodes", nodeNumber("bandwidthGb"), "Bandwidth in gigabytes of 1e9 bytes."),
  usageRow("node.cpu_usage", usage("cpuUsage"), "CPU usage, 0 to 1."),
  usageRow("node.memory_usage", usage("memoryUsage"), "Memory usage, 0 to 1."),
  usageRow("node.disk_usage", usage("diskUsage"), "Disk usage, 0 to 1."),
  row("node.created_at", "timestamp", "details", timestamp("createdAtMs"), "When the node was created."),
  row("node.updated_at", "timestamp", "details", timestamp("updatedAtMs"), "When the node last changed."),
];

const sessionRows = [
  row("sessions.total", "int", "sessions", sessionTotal, TOTAL_HELP),
  sessionRow("active", sessionCount, `Sessions that are transferring data; ${IF_STATES_KNOWN}.`),
  sessionRow("connecting", sessionCount, `Sessions being established; ${IF_STATES_KNOWN}.`),
  sessionRow("closed", sessionCount, `Sessions that ended normally in the last five minutes; ${IF_STATES_KNOWN}.`),
  sessionRow(
    "error",
    failedSessionCount,
    `Sessions that ended with an error in the last five minutes; ${UNKNOWN_NOTE}.`,
  ),
  sessionRow("timeout", failedSessionCount, `Sessions that timed out in the last five minutes; ${UNKNOWN_NOTE}.`),
  row(
    "sessions.failed_ratio",
    "double",
    "sessions",
    failedSessionShare,
    `Share of sessions.total that ended with an error or timed out; missing if the node has no sessions; ${UNKNOWN_NOTE}.`,
    "ratio",
  ),
];

/** Every field, in the order of the documentation. */
export const FIELDS: readonly Field[] = [
  ...nodeRows,
  ...sessionRows,
  ...aggregateRows("fleet", "the fleet"),
  ...aggregateRows("region", "the node's region"),
  row("now", "timestamp", "nodes", recordTime, "When the node's record was observed, on the service's clock."),
];

const fieldsByName = new Map(FIELDS.map((field) => [field.name, field]));

/** Returns the field of that name, or null if there is none. */
export const findField = (name: string): Field | null => fieldsByName.get(name) ?? null;

function aggregateRows(scope: AggregateScope, subject: string): readonly Field[] {
  const median = (name: string, usageName: string, column: Usage): Field => {
    const help = `Median ${usageName} usage of ${subject}; missing unless at least half of its nodes have a value within max_age.`;
    const field = usageRow(`${scope}.median.${name}`, aggregateMedian(scope, column), help);
    if (scope === "region") return field;
    return { ...field, prepare: ({ aggregates }, freshFrom) => aggregates.prepareMedian(column, freshFrom) };
  };
  const onlineHelp = `Online nodes of ${subject}; a node of unknown status does not count.`;
  const shareHelp = `Share of the nodes of ${subject} that are online.`;
  const nodes = aggregateCount(scope, (counts) => counts.nodes);
  const online = aggregateCount(scope, (counts) => counts.online);
  const onlineShare = aggregateCount(scope, (counts) => counts.online / counts.nodes);
  return [
    row(`${scope}.nodes`, "int", "nodes", nodes, `Nodes of ${subject}.`),
    row(`${scope}.online`, "int", "nodes", online, onlineHelp),
    row(`${scope}.online_ratio`, "double", "nodes", onlineShare, shareHelp, "ratio"),
    median("cpu_usage", "CPU", "cpuUsage"),
    median("memory_usage", "memory", "memoryUsage"),
    median("disk_usage", "disk", "diskUsage"),
  ];
}
