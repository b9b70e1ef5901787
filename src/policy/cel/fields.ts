import type { Collector } from "../../model/snapshot.ts";

/** What a field holds, in CEL's words; a timestamp is read as milliseconds since the Unix epoch, on the service's clock. */
export type FieldType = "string" | "int" | "double" | "timestamp";

/**
 * Which values a field can have at all. A condition on any other value would never hold, or always, so it is refused:
 * `status`: a node state of the spec; `country`: two letters; `node_id`: begins with node_; `ratio`: 0 to 1.
 */
export type FieldRange = "status" | "country" | "node_id" | "ratio" | null;

interface Row<Name extends string> {
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

const row = <Name extends string>(
  name: Name,
  type: FieldType,
  source: Row<Name>["source"],
  help: string,
  { range = null, isUsage = false }: { range?: FieldRange; isUsage?: boolean } = {},
): Row<Name> => ({ name, type, source, range, isUsage, help });

const usage = { range: "ratio", isUsage: true } as const;
const ratio = { range: "ratio" } as const;

const nodeRows = [
  row("node.id", "string", "nodes", "Identifier of the node.", { range: "node_id" }),
  row("node.name", "string", "nodes", "Name of the node."),
  row(
    "node.status",
    "string",
    "nodes",
    "State of the node; a state that this version does not know counts as missing.",
    {
      range: "status",
    },
  ),
  row("node.country", "string", "nodes", "Two-letter country code.", { range: "country" }),
  row("node.region", "string", "nodes", "Region label."),
  row("node.ip_address", "string", "nodes", "IP address of the node."),
  row("node.version", "string", "nodes", "Software version of the node."),
  row("node.last_seen", "timestamp", "nodes", "When the service last saw the node."),
  row("node.uptime_hours", "int", "nodes", "Whole hours of uptime."),
  row("node.active_sessions", "int", "nodes", "Sessions, as the node's record counts them."),
  row("node.bandwidth_gb", "double", "nodes", "Bandwidth in gigabytes of 1e9 bytes."),
  row("node.cpu_usage", "double", "details", "CPU usage, 0 to 1.", usage),
  row("node.memory_usage", "double", "details", "Memory usage, 0 to 1.", usage),
  row("node.disk_usage", "double", "details", "Disk usage, 0 to 1.", usage),
  row("node.created_at", "timestamp", "details", "When the node was created."),
  row("node.updated_at", "timestamp", "details", "When the node was last changed."),
] as const;

const sessionRows = [
  row(
    "sessions.total",
    "int",
    "sessions",
    "Sessions of the node: those that live, and those that ended within the last five minutes.",
  ),
  row("sessions.active", "int", "sessions", "Those that transfer data; missing where the state of one is not known."),
  row(
    "sessions.connecting",
    "int",
    "sessions",
    "Those being established; missing where the state of one is not known.",
  ),
  row(
    "sessions.closed",
    "int",
    "sessions",
    "Those that ended normally within the last five minutes; missing where the state of one is not known.",
  ),
  row(
    "sessions.error",
    "int",
    "sessions",
    "Those that ended by an error within the last five minutes; missing until the list has ever shown a failed one, and unknown where none failed in the last minute.",
  ),
  row(
    "sessions.timeout",
    "int",
    "sessions",
    "Those that timed out within the last five minutes; missing until the list has ever shown a failed one, and unknown where none failed in the last minute.",
  ),
  row(
    "sessions.failed_ratio",
    "double",
    "sessions",
    "Share of those in sessions.total that ended by error or timeout; missing without any, and until the list has ever shown a failed one; unknown where none failed in the last minute.",
    ratio,
  ),
] as const;

const fleetRows = placeRows("fleet", "the fleet");
const regionRows = placeRows("region", "the node's region");

const nowRow = row("now", "timestamp", "nodes", "When the node's record was observed, on the service's clock.");

const rows = [...nodeRows, ...sessionRows, ...fleetRows, ...regionRows, nowRow] as const;

/** Name of a field, as expressions write it. */
export type FieldName = (typeof rows)[number]["name"];
/** Something that expressions read of a node, its sessions, its region or the fleet. */
export type Field = Row<FieldName>;

/** Every field, in the order in which the docs show them. */
export const FIELDS: readonly Field[] = rows;

const byName: ReadonlyMap<string, Field> = new Map(FIELDS.map((field) => [field.name, field]));

/** The field of that name; null: there is none. */
export const fieldNamed = (name: string): Field | null => byName.get(name) ?? null;

function placeRows<Place extends "fleet" | "region">(place: Place, words: string) {
  const median = (part: string) =>
    `Median ${part} usage of ${words}; missing unless half of its nodes have a value within max_age.`;
  return [
    row(`${place}.nodes`, "int", "nodes", `Nodes of ${words}.`),
    row(`${place}.online`, "int", "nodes", `Nodes of ${words} that are online; one whose state is not known is not.`),
    row(`${place}.online_ratio`, "double", "nodes", `Share of the nodes of ${words} that are online.`, ratio),
    row(`${place}.median.cpu_usage`, "double", "details", median("CPU"), usage),
    row(`${place}.median.memory_usage`, "double", "details", median("memory"), usage),
    row(`${place}.median.disk_usage`, "double", "details", median("disk"), usage),
  ] as const;
}
