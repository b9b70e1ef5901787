import { byName } from "../../base/by-name.ts";
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
  type NumberField,
} from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionRecord } from "../../model/session.ts";
import { type ApiError, describeJson } from "../errors.ts";
import { asRawRecord, type RawRecord } from "../json-body.ts";
import {
  IDENTIFIER_EXPECTED,
  isIdentifier,
  type OnProblem,
  QUANTITY,
  REFERENCE,
  type RecordFields,
  readFields,
  TEXT,
  TIME,
} from "./fields.ts";

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

/** Returns the fields of a node by their names in {@link NodeRecord} and {@link NodeDetail}. */
const nodeFields = (numbers: Readonly<Record<string, NumberField>>): RecordFields => ({
  ...byName(LISTED_TEXT_NAMES, (name) => ({ field: LISTED_TEXTS[name], kind: TEXT })),
  ...byName(Object.keys(numbers), (name) => {
    const { field, kind } = numbers[name]!;
    return { field, kind: kind === "time" ? TIME : QUANTITY };
  }),
});

const LISTED_FIELDS = nodeFields(LISTED_NUMBERS);
const DETAIL_FIELDS = nodeFields({ ...LISTED_NUMBERS, ...DETAIL_NUMBERS });

const SESSION_FIELDS = {
  customerId: { field: "customer_id", kind: REFERENCE },
  nodeId: { field: "node_id", kind: REFERENCE },
  startedAtMs: { field: "started_at", kind: TIME },
  durationSeconds: { field: "duration_seconds", kind: QUANTITY },
  bytesSent: { field: "bytes_sent", kind: QUANTITY },
  bytesReceived: { field: "bytes_received", kind: QUANTITY },
  country: { field: "country", kind: TEXT },
} satisfies RecordFields;

/** Decodes a node of the list (spec, section 2.1). Returns null, with a problem, if it is unreadable. */
export const decodeNodeRecord = (json: unknown, onProblem: OnProblem): NodeRecord | null =>
  decodeNode<NodeRecord>(json, LISTED_FIELDS, onProblem);

/** Decodes the detail of a node (spec, section 2.1). Returns null, with a problem, if it is unreadable. */
export const decodeNodeDetail = (json: unknown, onProblem: OnProblem): NodeDetail | null =>
  decodeNode<NodeDetail>(json, DETAIL_FIELDS, onProblem);

function decodeNode<N extends NodeRecord>(json: unknown, fields: RecordFields, onProblem: OnProblem): N | null {
  const raw = identifyRecord(json, onProblem);
  if (raw === null) return null;
  const target = { id: raw.id, status: readNodeStatus(raw, onProblem) };
  return readFields(raw, fields, target, onProblem) as unknown as N;
}

/** Decodes a session of the list (spec, section 2.2). Returns null, with a problem, if it is unreadable. */
export function decodeSessionRecord(json: unknown, onProblem: OnProblem): SessionRecord | null {
  const raw = identifyRecord(json, onProblem);
  if (raw === null) return null;
  const [status, type] = [readSessionStatus(raw, onProblem), readSessionType(raw, onProblem)];
  return readFields(raw, SESSION_FIELDS, { id: raw.id, status, type }, onProblem);
}

/** Response to an action (spec, sections 4.3 to 4.5). Null if not stated. */
export type ActionReply = ReturnType<typeof decodeActionReply>;

/** Decodes the response to an action. Fields that are missing or invalid are null. */
export function decodeActionReply(json: unknown) {
  const raw = asRawRecord(json);
  return {
    success: typeof raw.success === "boolean" ? raw.success : null,
    message: TEXT.read(raw.message) ?? null,
    /** Duration of a quarantine. */
    durationMinutes: QUANTITY.read(raw.duration_minutes) ?? null,
  };
}

type IdentifiedRecord = RawRecord & { readonly id: string };

/** Returns the record, or null, with a problem, if it is not an object or has no id. */
function identifyRecord(json: unknown, onProblem: OnProblem): IdentifiedRecord | null {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    onProblem({ reason: "not_an_object", id: null, detail: `found ${describeJson(json)}; a record is an object` });
    return null;
  }
  const { id } = json as RawRecord;
  if (isIdentifier(id)) return json as IdentifiedRecord;
  onProblem({ reason: "missing_id", id: null, detail: `id is ${describeJson(id)}; it must be ${IDENTIFIER_EXPECTED}` });
  return null;
}

/** Returns a reader of a field with one of `words`. Any other value is read as `unknown`, with a problem. */
function wordReader<Word extends string>(words: readonly Word[], field: string, reason: RejectReason) {
  const known: ReadonlySet<unknown> = new Set(words.filter((word) => word !== "unknown"));
  return (raw: IdentifiedRecord, onProblem: OnProblem): Word | "unknown" => {
    const value = raw[field];
    if (known.has(value)) return value as Word;
    const detail = `${field} is ${describeJson(value)}; known values: ${[...known].join(", ")}`;
    onProblem({ reason, id: raw.id, detail });
    return "unknown";
  };
}

const readNodeStatus = wordReader(NODE_STATUSES, "status", "unknown_status");
const readSessionStatus = wordReader(SESSION_STATUSES, "status", "unknown_status");
const readSessionType = wordReader(SESSION_TYPES, "session_type", "unknown_type");
