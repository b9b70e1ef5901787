import { type ColumnRow, NODE_COLUMN_ROWS, NODE_INFO, NODE_STATUS } from "../../metrics/families/node-families.ts";
import { DETAIL_NUMBERS, LISTED_NUMBERS, NODE_LABELS, type NodeLabel } from "../../model/node.ts";
import { USAGES } from "../../model/policy/policy.ts";
import type { SessionStatus } from "../../model/session.ts";
import type { Expression } from "../../policy/cel/expression.ts";
import type { Field } from "../../policy/cel/fields.ts";

/** Name of the family that shows the sessions of a node by status. */
export const NODE_SESSIONS = "proxynet_node_sessions";
/**
 * Statuses for which that family counts the same sessions as policies do. A session of unknown status makes all counts
 * unknown.
 */
export const COMPARABLE_STATUSES: readonly SessionStatus[] = ["active", "connecting", "unknown"];

/** The family that shows the value of a field. */
interface FieldSource {
  readonly family: string;
  /** The label that holds the value. Absent if the sample is the value. */
  readonly label?: NodeLabel;
}

const NUMBER_FIELDS = { ...LISTED_NUMBERS, ...DETAIL_NUMBERS };
const columnRows = new Map(NODE_COLUMN_ROWS.map((row) => [row.column, row]));
const familyOf = (column: ColumnRow["column"]): string => columnRows.get(column)!.name;

/** The family with the time at which each detail was read. */
const DETAIL_TIMES: ColumnRow = columnRows.get("detailedAtEpochMs")!;
/** The family with the time at which the service last saw each node. */
export const LAST_SEEN: ColumnRow = columnRows.get("lastSeenMs")!;

/**
 * The source of every field that the metrics show. Ended sessions have no source: the metrics count all that are listed,
 * but policies count only those that ended within the last few minutes.
 */
const FIELD_SOURCES: ReadonlyMap<string, FieldSource> = new Map<string, FieldSource>([
  ...["node.id", "node.status", "now"].map((name) => [name, { family: NODE_STATUS.name }] as const),
  ...["fleet", "region"].flatMap((scope) =>
    ["nodes", "online", "online_ratio"].map((name) => [`${scope}.${name}`, { family: NODE_STATUS.name }] as const),
  ),
  ...NODE_LABELS.map((label) => [`node.${label}`, { family: NODE_INFO.name, label }] as const),
  ...(Object.keys(NUMBER_FIELDS) as (keyof typeof NUMBER_FIELDS)[]).map(
    (column) => [`node.${NUMBER_FIELDS[column].field}`, { family: familyOf(column) }] as const,
  ),
  ...["fleet", "region"].flatMap((scope) =>
    USAGES.map((usage) => [`${scope}.median.${DETAIL_NUMBERS[usage].field}`, { family: familyOf(usage) }] as const),
  ),
  ...["sessions.active", "sessions.connecting"].map((name) => [name, { family: NODE_SESSIONS }] as const),
]);

/** The families to read, besides status and labels, which are always read. */
export interface HistoryFamilies {
  readonly columns: readonly ColumnRow[];
  /** Whether {@link NODE_SESSIONS} is read. */
  readonly sessions: boolean;
}

/** Returns the families that expressions need. They always include `last_seen`, which trust in the fleet data needs. */
export function familiesOf(expressions: readonly (Expression | null)[]): HistoryFamilies {
  const fields = expressions.flatMap((expression) => expression?.fields ?? []);
  const names = new Set(fields.map(({ name }) => FIELD_SOURCES.get(name)?.family));
  const readsDetails = fields.some(({ source }) => source === "details");
  const columns = NODE_COLUMN_ROWS.filter(
    (row) => row === LAST_SEEN || names.has(row.name) || (row === DETAIL_TIMES && readsDetails),
  );
  return { columns, sessions: names.has(NODE_SESSIONS) };
}

/**
 * Returns why a field has no value in the history, or null if it has one. `families` are those with samples in the
 * history, `labels` those labels of {@link NODE_INFO} that have a value there.
 */
export function missingFieldReason(
  { name, source }: Field,
  families: ReadonlySet<string>,
  labels: ReadonlySet<NodeLabel>,
): string | null {
  const from = FIELD_SOURCES.get(name);
  if (from === undefined) return "not exported in the form that policies read";
  if (source === "details" && !families.has(DETAIL_TIMES.name)) return `${DETAIL_TIMES.name} has no samples`;
  if (!families.has(from.family)) return `${from.family} has no samples`;
  const label = name.startsWith("region.") ? "region" : from.label;
  if (label === undefined || labels.has(label)) return null;
  return `${NODE_INFO.name} has no label ${label} (export.node_labels)`;
}
