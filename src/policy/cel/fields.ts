import type { Collector } from "../../model/snapshot.ts";

/** What a field holds, in CEL's words; a timestamp is read as milliseconds since the Unix epoch, on the service's clock. */
export type FieldType = "string" | "int" | "double" | "timestamp";

/**
 * Which values a field can have at all. A condition on any other value would never hold, or always, so it is refused:
 * `status`: a node state of the spec; `country`: two letters; `node_id`: begins with node_; `ratio`: 0 to 1.
 */
export type FieldRange = "status" | "country" | "node_id" | "ratio" | null;

interface FieldRow<Name extends string> {
  /** As expressions write it. */
  readonly name: Name;
  readonly type: FieldType;
  /** The collector that brings it: its max_age is the field's. */
  readonly source: Extract<Collector, "nodes" | "details" | "sessions">;
  readonly range: FieldRange;
  /** Known only while a usage scale is declared and nothing contradicted it. */
  readonly isUsage: boolean;
  /** What it means, in one sentence. */
  readonly help: string;
}

const fieldRow = <Name extends string>(
  name: Name,
  type: FieldType,
  source: FieldRow<Name>["source"],
  help: string,
  { range = null, isUsage = false }: { range?: FieldRange; isUsage?: boolean } = {},
): FieldRow<Name> => ({ name, type, source, range, isUsage, help });

const USAGE_RANGE = { range: "ratio", isUsage: true } as const;
const RATIO_RANGE = { range: "ratio" } as const;

const nodeRows = [
  fieldRow("node.id", "string", "nodes", "Identifier of the node.", { range: "node_id" }),
  fieldRow("node.name", "string", "nodes", "Name of the node."),
  fieldRow(
    "node.status",
    "string",
    "nodes",
    "State of the node; a state that this version does not know counts as missing.",
    {
      range: "status",
    },
  ),
  fieldRow("node.country", "string", "nodes", "Two-letter country code.", { range: "country" }),
  fieldRow("node.region", "string", "nodes", "Region label."),
  fieldRow("node.ip_address", "string", "nodes", "IP address of the node."),
  fieldRow("node.version", "string", "nodes", "Software version of the node."),
  fieldRow("node.last_seen", "timestamp", "nodes", "When the service last saw the node."),
  fieldRow("node.uptime_hours", "int", "nodes", "Whole hours of uptime."),
  fieldRow("node.active_sessions", "int", "nodes", "Sessions, as the node's record counts them."),
  fieldRow("node.bandwidth_gb", "double", "nodes", "Bandwidth in gigabytes of 1e9 bytes."),
  fieldRow("node.cpu_usage", "double", "details", "CPU usage, 0 to 1.", USAGE_RANGE),
  fieldRow("node.memory_usage", "double", "details", "Memory usage, 0 to 1.", USAGE_RANGE),
  fieldRow("node.disk_usage", "double", "details", "Disk usage, 0 to 1.", USAGE_RANGE),
  fieldRow("node.created_at", "timestamp", "details", "When the node was created."),
  fieldRow("node.updated_at", "timestamp", "details", "When the node was last changed."),
] as const;

const sessionRows = [
  fieldRow(
    "sessions.total",
    "int",
    "sessions",
    "Sessions of the node: those that live, and those that ended within the last five minutes.",
  ),
  fieldRow(
    "sessions.active",
    "int",
    "sessions",
    "Those that transfer data; missing where the state of one is not known.",
  ),
  fieldRow(
    "sessions.connecting",
    "int",
    "sessions",
    "Those being established; missing where the state of one is not known.",
  ),
  fieldRow(
    "sessions.closed",
    "int",
    "sessions",
    "Those that ended normally within the last five minutes; missing where the state of one is not known.",
  ),
  fieldRow(
    "sessions.error",
    "int",
    "sessions",
    "Those that ended by an error within the last five minutes; missing until the list has ever shown a failed one, and unknown where none failed in the last minute.",
  ),
  fieldRow(
    "sessions.timeout",
    "int",
    "sessions",
    "Those that timed out within the last five minutes; missing until the list has ever shown a failed one, and unknown where none failed in the last minute.",
  ),
  fieldRow(
    "sessions.failed_ratio",
    "double",
    "sessions",
    "Share of those in sessions.total that ended by error or timeout; missing without any, and until the list has ever shown a failed one; unknown where none failed in the last minute.",
    RATIO_RANGE,
  ),
] as const;

const fleetRows = aggregateRows("fleet", "the fleet");
const regionRows = aggregateRows("region", "the node's region");

const nowRow = fieldRow("now", "timestamp", "nodes", "When the node's record was observed, on the service's clock.");

const rows = [...nodeRows, ...sessionRows, ...fleetRows, ...regionRows, nowRow] as const;

/** Name of a field, as expressions write it. */
export type FieldName = (typeof rows)[number]["name"];
/** Something that expressions read of a node, its sessions, its region or the fleet. */
export type Field = FieldRow<FieldName>;

/** Every field, in the order in which the docs show them. */
export const FIELDS: readonly Field[] = rows;

const fieldsByName: ReadonlyMap<string, Field> = new Map(FIELDS.map((field) => [field.name, field]));

/** The field of that name; null: there is none. */
export const findField = (name: string): Field | null => fieldsByName.get(name) ?? null;

function aggregateRows<Place extends "fleet" | "region">(prefix: Place, subject: string) {
  const median = (part: string) =>
    `Median ${part} usage of ${subject}; missing unless half of its nodes have a value within max_age.`;
  return [
    fieldRow(`${prefix}.nodes`, "int", "nodes", `Nodes of ${subject}.`),
    fieldRow(
      `${prefix}.online`,
      "int",
      "nodes",
      `Nodes of ${subject} that are online; one whose state is not known is not.`,
    ),
    fieldRow(
      `${prefix}.online_ratio`,
      "double",
      "nodes",
      `Share of the nodes of ${subject} that are online.`,
      RATIO_RANGE,
    ),
    fieldRow(`${prefix}.median.cpu_usage`, "double", "details", median("CPU"), USAGE_RANGE),
    fieldRow(`${prefix}.median.memory_usage`, "double", "details", median("memory"), USAGE_RANGE),
    fieldRow(`${prefix}.median.disk_usage`, "double", "details", median("disk"), USAGE_RANGE),
  ] as const;
}
