import { fail, ok, type Result } from "../../base/result.ts";
import type { RejectReason } from "../../model/label-values.ts";
import {
  DETAIL_NUMBERS,
  LISTED_NUMBERS,
  LISTED_TEXT_NAMES,
  LISTED_TEXTS,
  NODE_STATUSES,
  type NodeDetail,
  type NodeRecord,
  type NodeStatus,
} from "../../model/node.ts";
import {
  SESSION_STATUSES,
  SESSION_TYPES,
  type SessionRecord,
  type SessionStatus,
  type SessionType,
} from "../../model/session.ts";
import { type ApiError, describeJson } from "../errors.ts";
import {
  asRawRecord,
  type FieldChecks,
  findInvalidFields,
  IDENTIFIER_EXPECTED,
  isIdentifier,
  isQuantity,
  isReference,
  isText,
  isTime,
  quantityOrNull,
  type RawRecord,
  referenceOrNull,
  textOrNull,
  timeOrNull,
  withoutFields,
} from "./fields.ts";

/** A problem with one record. `id` is null if it could not be read. */
export interface RecordRemark {
  readonly reason: RejectReason;
  readonly id: string | null;
  /** What was found and what would be valid. */
  readonly detail: string;
}

/** Called with each remark while records are decoded. */
export type OnRemark = (remark: RecordRemark) => void;

/**
 * One page of a list (spec, section 2.5) with records that are not decoded yet. `limit` is the page size as stated, or
 * null if there is none.
 */
export interface RawPage {
  readonly records: readonly unknown[];
  readonly limit: number | null;
  readonly total: number;
}

/**
 * Maximum number of records in a page, which are processed at once. A body of maximum size has fewer ordinary records.
 */
const PAGE_RECORDS_MAX = 50_000;

/** Decodes the envelope of a list. */
export function decodePage(json: unknown): Result<RawPage, ApiError> {
  const { data, pagination } = asRawRecord(json);
  const { limit, total } = asRawRecord(pagination);
  if (!Array.isArray(data)) return wrongShape("a page", `data: expected a list, found ${describeJson(data)}`);
  if (data.length > PAGE_RECORDS_MAX) return wrongShape("a page", `data: it has more than ${PAGE_RECORDS_MAX} records`);
  if (!isCount(total))
    return wrongShape("a page", `pagination.total: expected a whole number from 0, found ${describeJson(total)}`);
  return ok({ records: data, limit: isCount(limit) ? limit : null, total });
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Returns the error for a body that is not `what`. `problem` names the field, what was expected and what was found. */
export const wrongShape = (what: string, problem: string): Result<never, ApiError> =>
  fail({ kind: "wrong_shape", message: `this is not ${what}: ${problem}` });

/** Numeric fields of a node, each with its check and conversion. */
const numberFields = (rows: typeof LISTED_NUMBERS | typeof DETAIL_NUMBERS) =>
  Object.entries(rows).map(([name, { field, kind }]) =>
    kind === "time"
      ? { name, field, check: isTime, read: timeOrNull }
      : { name, field, check: isQuantity, read: quantityOrNull },
  );

const listedNumbers = numberFields(LISTED_NUMBERS);
const detailNumbers = numberFields(DETAIL_NUMBERS);

const nodeFields: FieldChecks = {
  ...Object.fromEntries(Object.values(LISTED_TEXTS).map((field) => [field, isText])),
  ...Object.fromEntries(listedNumbers.map(({ field, check }) => [field, check])),
};

const detailFields: FieldChecks = {
  ...nodeFields,
  ...Object.fromEntries(detailNumbers.map(({ field, check }) => [field, check])),
};

const sessionFields: FieldChecks = {
  customer_id: isReference,
  node_id: isReference,
  started_at: isTime,
  duration_seconds: isQuantity,
  bytes_sent: isQuantity,
  bytes_received: isQuantity,
  country: isText,
};

/** Decodes a node of the list (spec, section 2.1), or null, with a remark, if it is unreadable. */
export function decodeNodeRecord(json: unknown, onRemark: OnRemark): NodeRecord | null {
  const raw = decodeRecord(json, nodeFields, onRemark);
  return raw === null ? null : toNode<NodeRecord>(raw, listedNumbers, onRemark);
}

/** Decodes the detail of a node (spec, section 2.1), or null, with a remark, if it is unreadable. */
export function decodeNodeDetail(json: unknown, onRemark: OnRemark): NodeDetail | null {
  const raw = decodeRecord(json, detailFields, onRemark);
  return raw === null ? null : toNode<NodeDetail>(raw, [...listedNumbers, ...detailNumbers], onRemark);
}

/** Decodes a session of the list (spec, section 2.2), or null, with a remark, if it is unreadable. */
export function decodeSessionRecord(json: unknown, onRemark: OnRemark): SessionRecord | null {
  const raw = decodeRecord(json, sessionFields, onRemark);
  if (raw === null) return null;
  const id = raw.id as string;
  return {
    id,
    customerId: referenceOrNull(raw.customer_id),
    nodeId: referenceOrNull(raw.node_id),
    status: oneOf<SessionStatus>(sessionStatuses, raw.status, "status", "unknown_status", id, onRemark),
    type: oneOf<SessionType>(sessionTypes, raw.session_type, "session_type", "unknown_type", id, onRemark),
    startedAtMs: timeOrNull(raw.started_at),
    durationSeconds: quantityOrNull(raw.duration_seconds),
    bytesSent: quantityOrNull(raw.bytes_sent),
    bytesReceived: quantityOrNull(raw.bytes_received),
    country: textOrNull(raw.country),
  };
}

/** Response to an action (spec, sections 4.3 to 4.5). Null if not stated. */
export interface ActionReply {
  readonly success: boolean | null;
  readonly message: string | null;
  /** Duration of a quarantine. */
  readonly durationMinutes: number | null;
  readonly disconnectedSessions: number | null;
}

/** Decodes the response to an action. Fields that are missing or invalid are null. */
export function decodeActionReply(json: unknown): ActionReply {
  const raw = asRawRecord(json);
  const number = (value: unknown) => (isQuantity(value) ? quantityOrNull(value) : null);
  return {
    success: typeof raw.success === "boolean" ? raw.success : null,
    message: isText(raw.message) ? textOrNull(raw.message) : null,
    durationMinutes: number(raw.duration_minutes),
    disconnectedSessions: number(raw.disconnected_sessions),
  };
}

/**
 * Checks a record and removes invalid fields with a remark. Returns null with a remark if it is not an object or has no
 * id.
 */
function decodeRecord(json: unknown, fields: FieldChecks, onRemark: OnRemark): RawRecord | null {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    onRemark({ reason: "not_an_object", id: null, detail: `found ${describeJson(json)}; a record is an object` });
    return null;
  }
  const raw = json as RawRecord;
  if (!isIdentifier(raw.id)) {
    onRemark({ reason: "missing_id", id: null, detail: `id is ${describeJson(raw.id)}; it is ${IDENTIFIER_EXPECTED}` });
    return null;
  }
  return dropInvalidFields(raw, fields, raw.id, onRemark);
}

/** Removes the invalid fields of a record, with one remark that describes the first of them. */
export function dropInvalidFields(
  raw: RawRecord,
  fields: FieldChecks,
  id: string | null,
  onRemark: OnRemark,
): RawRecord {
  const invalid = findInvalidFields(raw, fields);
  if (invalid === null) return raw;
  const [{ field, reason, expected }, ...others] = invalid;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  onRemark({ reason, id, detail: `${field} is ${describeJson(raw[field])}; ${expected}${more}` });
  return withoutFields(raw, invalid);
}

function toNode<N extends NodeRecord>(raw: RawRecord, numbers: ReturnType<typeof numberFields>, onRemark: OnRemark): N {
  const id = raw.id as string;
  const node: Record<string, unknown> = {
    id,
    status: oneOf<NodeStatus>(nodeStatuses, raw.status, "status", "unknown_status", id, onRemark),
  };
  for (const name of LISTED_TEXT_NAMES) node[name] = textOrNull(raw[LISTED_TEXTS[name]]);
  for (const { name, field, read } of numbers) node[name] = read(raw[field]);
  return node as unknown as N;
}

const nodeStatuses: ReadonlySet<unknown> = new Set(NODE_STATUSES.filter((status) => status !== "unknown"));
const sessionStatuses: ReadonlySet<unknown> = new Set(SESSION_STATUSES.filter((status) => status !== "unknown"));
const sessionTypes: ReadonlySet<unknown> = new Set(SESSION_TYPES.filter((type) => type !== "unknown"));

function oneOf<T extends string>(
  known: ReadonlySet<unknown>,
  value: unknown,
  field: string,
  reason: RejectReason,
  id: string,
  onRemark: OnRemark,
): T | "unknown" {
  if (known.has(value)) return value as T;
  onRemark({ reason, id, detail: `${field} is ${describeJson(value)}; known are ${[...known].join(", ")}` });
  return "unknown";
}
