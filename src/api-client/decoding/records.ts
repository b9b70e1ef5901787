import { z } from "zod";
import { fail, ok, type Result } from "../../base/result.ts";
import type { RejectReason } from "../../metrics/label-values.ts";
import { NODE_STATUSES, type NodeDetail, type NodeRecord, type NodeStatus } from "../../model/node.ts";
import {
  type HourlyEntry,
  SESSION_STATUSES,
  SESSION_TYPES,
  type SessionRecord,
  type SessionStatistics,
  type SessionStatus,
  type SessionType,
} from "../../model/session.ts";
import { type ApiError, describeJson, wrongShape } from "../errors.ts";
import {
  asRawRecord,
  type FieldChecks,
  findInvalidFields,
  IDENTIFIER_EXPECTED,
  isIdentifier,
  isList,
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

/** A remark on one record. `id` is null where even that could not be read. */
export interface RecordRemark {
  readonly reason: RejectReason;
  readonly id: string | null;
  /** What was found and what would be right. */
  readonly detail: string;
}

/** Called with every remark while records are read. */
export type OnRemark = (remark: RecordRemark) => void;

/** One page of a list (spec, section 2.5), its records still unread. `limit` is what the service echoed, if it is one. */
export interface RawPage {
  readonly records: readonly unknown[];
  readonly limit: number | null;
  readonly total: number;
}

/** Records of one page: no body that a transport accepts holds more of the usual size. They are folded in one go. */
const PAGE_RECORDS_MAX = 50_000;
const TOO_LONG = { issues: [{ path: ["data"], message: `it has more than ${PAGE_RECORDS_MAX} records` }] };

const count = z.number().int().min(0);

const pageShape = z.object({
  data: z.array(z.unknown()),
  pagination: z.object({ limit: count.nullish().catch(null), total: count }),
});

/** Reads the envelope of a list. */
export function decodePage(json: unknown): Result<RawPage, ApiError> {
  const parsed = pageShape.safeParse(json);
  if (!parsed.success) return fail(wrongShape("a page", parsed.error));
  const { data, pagination } = parsed.data;
  if (data.length > PAGE_RECORDS_MAX) return fail(wrongShape("a page", TOO_LONG));
  return ok({ records: data, limit: pagination.limit ?? null, total: pagination.total });
}

const nodeFields: FieldChecks = {
  name: isText,
  country: isText,
  region: isText,
  ip_address: isText,
  version: isText,
  last_seen: isTime,
  uptime_hours: isQuantity,
  active_sessions: isQuantity,
  bandwidth_gb: isQuantity,
};

const detailFields: FieldChecks = {
  ...nodeFields,
  cpu_usage: isQuantity,
  memory_usage: isQuantity,
  disk_usage: isQuantity,
  created_at: isTime,
  updated_at: isTime,
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

/** Reads a node of the list (spec, section 2.1); null, with a remark, where it can't be read. */
export function decodeNodeRecord(json: unknown, onRemark: OnRemark): NodeRecord | null {
  const raw = decodeRecord(json, nodeFields, onRemark);
  return raw === null ? null : toNodeRecord(raw, onRemark);
}

/** Reads a node in detail form (spec, section 2.1); null, with a remark, where it can't be read. */
export function decodeNodeDetail(json: unknown, onRemark: OnRemark): NodeDetail | null {
  const raw = decodeRecord(json, detailFields, onRemark);
  if (raw === null) return null;
  return {
    ...toNodeRecord(raw, onRemark),
    cpuUsage: quantityOrNull(raw.cpu_usage),
    memoryUsage: quantityOrNull(raw.memory_usage),
    diskUsage: quantityOrNull(raw.disk_usage),
    createdAtMs: timeOrNull(raw.created_at),
    updatedAtMs: timeOrNull(raw.updated_at),
  };
}

/** Reads a session of the list (spec, section 2.2); null, with a remark, where it can't be read. */
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

const statisticsFields: FieldChecks = {
  active_sessions: isQuantity,
  total_sessions_today: isQuantity,
  bandwidth_today_gb: isQuantity,
  peak_concurrent_sessions: isQuantity,
  average_session_duration_seconds: isQuantity,
  top_countries: isList,
  top_protocols: isList,
};

/** Reads the aggregate statistics (spec, section 2.3). An odd field is unknown, an odd entry left out, with a remark. */
export function decodeStatistics(json: unknown, onRemark: OnRemark): Result<SessionStatistics, ApiError> {
  const raw = dropInvalidFields(asRawRecord(json), statisticsFields, null, onRemark);
  if (Object.keys(statisticsFields).every((field) => (raw[field] ?? null) === null)) {
    return fail({ kind: "wrong_shape", message: "these are not session statistics: none of their fields can be read" });
  }
  return ok({
    activeSessions: quantityOrNull(raw.active_sessions),
    sessionsToday: quantityOrNull(raw.total_sessions_today),
    bandwidthTodayGb: quantityOrNull(raw.bandwidth_today_gb),
    peakConcurrentSessions: quantityOrNull(raw.peak_concurrent_sessions),
    averageDurationSeconds: quantityOrNull(raw.average_session_duration_seconds),
    topCountries: decodeTopList(raw.top_countries, "country", onRemark).map(({ name, sessions }) => ({
      country: name,
      sessions,
    })),
    topProtocols: decodeTopList(raw.top_protocols, "protocol", onRemark).map(({ name, sessions }) => ({
      protocol: name,
      sessions,
    })),
  });
}

function decodeTopList(entries: unknown, field: string, onRemark: OnRemark) {
  return ((entries ?? []) as readonly unknown[]).flatMap((entry) => {
    const raw = asRawRecord(entry);
    const [name, sessions] = [raw[field], raw.sessions];
    if (isIdentifier(name) && isQuantity(sessions)) return [{ name, sessions: quantityOrNull(sessions) ?? 0 }];
    const right = `an entry has a ${field}, which is ${IDENTIFIER_EXPECTED}, and a number of sessions from 0`;
    onRemark({ reason: "wrong_type", id: null, detail: `found ${describeJson(entry)}; ${right}` });
    return [];
  });
}

/** Hours that are taken of the hourly statistics: a day has 24, and a service may show some days. */
const HOURS_MAX = 300;

const hourFields: FieldChecks = {
  active_sessions: isQuantity,
  new_sessions: isQuantity,
  bandwidth_gb: isQuantity,
};
const hourlyShape = z.object({ data: z.array(z.unknown()) });

/**
 * Reads the hourly statistics (spec, section 2.4), in the order of time. An odd number is unknown, and an entry whose
 * hour can't be read is left out, with a remark.
 */
export function decodeHourly(json: unknown, onRemark: OnRemark): Result<readonly HourlyEntry[], ApiError> {
  const parsed = hourlyShape.safeParse(json);
  if (!parsed.success) return fail(wrongShape("hourly statistics", parsed.error));
  const entries = parsed.data.data.slice(0, HOURS_MAX).flatMap((entry) => {
    const { hour } = asRawRecord(entry);
    const hourMs = isTime(hour) ? timeOrNull(hour) : null;
    if (hourMs === null) {
      onRemark({ reason: "bad_time", id: null, detail: `found ${describeJson(entry)}; an hour has a timestamp` });
      return [];
    }
    const raw = dropInvalidFields(asRawRecord(entry), hourFields, null, onRemark);
    const activeSessions = quantityOrNull(raw.active_sessions);
    return [
      {
        hourMs,
        activeSessions,
        newSessions: quantityOrNull(raw.new_sessions),
        bandwidthGb: quantityOrNull(raw.bandwidth_gb),
      },
    ];
  });
  return ok(entries.sort((a, b) => a.hourMs - b.hourMs));
}

/** What an action's answer says (spec, sections 4.3 to 4.5: most of it is not shown). Null: it doesn't say. */
export interface ActionReply {
  readonly success: boolean | null;
  readonly message: string | null;
  /** Of a quarantine: how long it will last. */
  readonly durationMinutes: number | null;
  readonly disconnectedSessions: number | null;
}

/** Reads an action's answer. Whatever is not as the spec has it counts as not said. */
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
 * The record as an object with an id, in which a field that is not what it must be is missing, with a remark; null, with
 * a remark, where there is no object or no id.
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

/** The record with its wrong fields missing, and one remark that describes the first of them. */
function dropInvalidFields(raw: RawRecord, fields: FieldChecks, id: string | null, onRemark: OnRemark): RawRecord {
  const wrong = findInvalidFields(raw, fields);
  if (wrong === null) return raw;
  const [{ field, reason, expected: right }, ...others] = wrong;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  onRemark({ reason, id, detail: `${field} is ${describeJson(raw[field])}; ${right}${more}` });
  return withoutFields(raw, wrong);
}

function toNodeRecord(raw: RawRecord, onRemark: OnRemark): NodeRecord {
  const id = raw.id as string;
  return {
    id,
    name: textOrNull(raw.name),
    status: oneOf<NodeStatus>(nodeStatuses, raw.status, "status", "unknown_status", id, onRemark),
    country: textOrNull(raw.country),
    region: textOrNull(raw.region),
    ipAddress: textOrNull(raw.ip_address),
    version: textOrNull(raw.version),
    lastSeenMs: timeOrNull(raw.last_seen),
    uptimeHours: quantityOrNull(raw.uptime_hours),
    activeSessions: quantityOrNull(raw.active_sessions),
    bandwidthGb: quantityOrNull(raw.bandwidth_gb),
  };
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
