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
  type NumberField,
} from "../../model/node.ts";
import {
  SESSION_STATUSES,
  SESSION_TYPES,
  type SessionRecord,
  type SessionStatus,
  type SessionType,
} from "../../model/session.ts";
import { type ApiError, describeJson } from "../errors.ts";
import { asRawRecord, type RawRecord } from "../json-body.ts";
import {
  dropInvalidFields,
  type FieldChecks,
  IDENTIFIER_EXPECTED,
  isIdentifier,
  isQuantity,
  isReference,
  isText,
  isTime,
  quantityOrNull,
  readTime,
  referenceOrNull,
  textOrNull,
} from "./fields.ts";

/** A problem with one record. `id` is null if it could not be read. */
export interface RecordProblem {
  readonly reason: RejectReason;
  readonly id: string | null;
  /** What was found and what would be valid. */
  readonly detail: string;
}

/** Called with each problem while records are decoded. */
export type OnProblem = (problem: RecordProblem) => void;

/**
 * One page of a list (spec, section 2.5) with records that are not decoded yet; a walk empties `records` once it has
 * processed them. `limit` is the page size as stated, or null if there is none.
 */
export interface RawPage {
  readonly records: unknown[];
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
  // Some services, such as those in Go, encode an empty list as null.
  const records: unknown = data === null ? [] : data;
  if (!Array.isArray(records)) return wrongShape("a page", `data: expected a list, found ${describeJson(data)}`);
  if (records.length > PAGE_RECORDS_MAX)
    return wrongShape("a page", `data: it has more than ${PAGE_RECORDS_MAX} records`);
  if (!isCount(total))
    return wrongShape("a page", `pagination.total: expected a non-negative whole number, found ${describeJson(total)}`);
  return ok({ records, limit: isCount(limit) ? limit : null, total });
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Returns the error for a body that is not `what`. `problem` names the field, what was expected and what was found. */
export const wrongShape = (what: string, problem: string): Result<never, ApiError> =>
  fail({ kind: "wrong_shape", message: `this is not ${what}: ${problem}` });

/** The fields of a node in the list or in its detail, grouped by how they are checked and converted. */
interface NodeForm {
  readonly texts: readonly NodeField[];
  readonly quantities: readonly NodeField[];
  readonly times: readonly NodeField[];
  readonly checks: FieldChecks;
}

interface NodeField {
  /** Name in {@link NodeRecord} or {@link NodeDetail}. */
  readonly name: string;
  /** Name in the JSON of the service. */
  readonly field: string;
}

function nodeForm(numberRows: Readonly<Record<string, NumberField>>): NodeForm {
  const numbers = Object.entries(numberRows).map(([name, row]) => ({ name, ...row }));
  const texts = LISTED_TEXT_NAMES.map((name) => ({ name, field: LISTED_TEXTS[name] }));
  return {
    texts,
    quantities: numbers.filter(({ kind }) => kind === "quantity"),
    times: numbers.filter(({ kind }) => kind === "time"),
    checks: {
      ...Object.fromEntries(texts.map(({ field }) => [field, isText])),
      ...Object.fromEntries(numbers.map(({ field, kind }) => [field, kind === "time" ? isTime : isQuantity])),
    },
  };
}

const listForm = nodeForm(LISTED_NUMBERS);
const detailForm = nodeForm({ ...LISTED_NUMBERS, ...DETAIL_NUMBERS });

const sessionFields: FieldChecks = {
  customer_id: isReference,
  node_id: isReference,
  started_at: isTime,
  duration_seconds: isQuantity,
  bytes_sent: isQuantity,
  bytes_received: isQuantity,
  country: isText,
};
const { started_at: _, ...otherSessionFields } = sessionFields;

/** Decodes a node of the list (spec, section 2.1). Returns null, with a problem, if it is unreadable. */
export const decodeNodeRecord = (json: unknown, onProblem: OnProblem): NodeRecord | null =>
  decodeNode<NodeRecord>(json, listForm, onProblem);

/** Decodes the detail of a node (spec, section 2.1). Returns null, with a problem, if it is unreadable. */
export const decodeNodeDetail = (json: unknown, onProblem: OnProblem): NodeDetail | null =>
  decodeNode<NodeDetail>(json, detailForm, onProblem);

/** Decodes a session of the list (spec, section 2.2). Returns null, with a problem, if it is unreadable. */
export function decodeSessionRecord(json: unknown, onProblem: OnProblem): SessionRecord | null {
  const identified = identifyRecord(json, onProblem);
  if (identified === null) return null;
  const { id } = identified;
  // Parsing a time takes longer than all other checks.
  const startedAtMs = readTime(identified.started_at);
  const fields = Number.isNaN(startedAtMs) ? sessionFields : otherSessionFields;
  const raw = dropInvalidFields(identified, fields, id, onProblem);
  return {
    id,
    customerId: referenceOrNull(raw.customer_id),
    nodeId: referenceOrNull(raw.node_id),
    status: oneOf<SessionStatus>(sessionStatuses, raw.status, "status", "unknown_status", id, onProblem),
    type: oneOf<SessionType>(sessionTypes, raw.session_type, "session_type", "unknown_type", id, onProblem),
    startedAtMs: Number.isNaN(startedAtMs) ? null : startedAtMs,
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
}

/** Decodes the response to an action. Fields that are missing or invalid are null. */
export function decodeActionReply(json: unknown): ActionReply {
  const raw = asRawRecord(json);
  return {
    success: typeof raw.success === "boolean" ? raw.success : null,
    message: isText(raw.message) ? textOrNull(raw.message) : null,
    durationMinutes: isQuantity(raw.duration_minutes) ? quantityOrNull(raw.duration_minutes) : null,
  };
}

/** Returns the record, or null, with a problem, if it is not an object or has no id. */
function identifyRecord(json: unknown, onProblem: OnProblem): (RawRecord & { readonly id: string }) | null {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    onProblem({ reason: "not_an_object", id: null, detail: `found ${describeJson(json)}; a record is an object` });
    return null;
  }
  const { id } = json as RawRecord;
  if (isIdentifier(id)) return json as RawRecord & { readonly id: string };
  onProblem({ reason: "missing_id", id: null, detail: `id is ${describeJson(id)}; it must be ${IDENTIFIER_EXPECTED}` });
  return null;
}

function decodeNode<N extends NodeRecord>(json: unknown, form: NodeForm, onProblem: OnProblem): N | null {
  const raw = identifyRecord(json, onProblem);
  if (raw === null) return null;
  const { id } = raw;
  const node: Record<string, unknown> = { id, status: "unknown" };
  if (!readFields(raw, form, node)) readFields(dropInvalidFields(raw, form.checks, id, onProblem), form, node);
  node.status = oneOf<NodeStatus>(nodeStatuses, raw.status, "status", "unknown_status", id, onProblem);
  return node as unknown as N;
}

/**
 * Checks and reads the fields. Returns false if one is invalid. A list has millions of fields, so each is looked up
 * once, and each kind has a loop of its own.
 */
function readFields(raw: RawRecord, form: NodeForm, node: Record<string, unknown>): boolean {
  for (const { name, field } of form.texts) {
    const value = raw[field];
    if (!isText(value)) return false;
    node[name] = textOrNull(value);
  }
  for (const { name, field } of form.quantities) {
    const value = raw[field];
    if (!isQuantity(value)) return false;
    node[name] = quantityOrNull(value);
  }
  for (const { name, field } of form.times) {
    const value = readTime(raw[field]);
    if (Number.isNaN(value)) return false;
    node[name] = value;
  }
  return true;
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
  onProblem: OnProblem,
): T | "unknown" {
  if (known.has(value)) return value as T;
  onProblem({ reason, id, detail: `${field} is ${describeJson(value)}; known values: ${[...known].join(", ")}` });
  return "unknown";
}
