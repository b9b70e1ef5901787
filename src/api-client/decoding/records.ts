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
import { describe, type ServiceError, wrongShape } from "../errors.ts";
import {
  type Fields,
  findWrong,
  IDENTIFIER_EXPECTED,
  isIdentifier,
  isList,
  isQuantity,
  isReference,
  isText,
  isTime,
  quantity,
  type Raw,
  rawOf,
  reference,
  text,
  time,
  without,
} from "./fields.ts";

/** A remark on one record. `id` is null where even that could not be read. */
export interface Remark {
  readonly reason: RejectReason;
  readonly id: string | null;
  /** What was found and what would be right. */
  readonly detail: string;
}

/** Called with every remark while records are read. */
export type OnRemark = (remark: Remark) => void;

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
export function readPage(json: unknown): Result<RawPage, ServiceError> {
  const parsed = pageShape.safeParse(json);
  if (!parsed.success) return fail(wrongShape("a page", parsed.error));
  const { data, pagination } = parsed.data;
  if (data.length > PAGE_RECORDS_MAX) return fail(wrongShape("a page", TOO_LONG));
  return ok({ records: data, limit: pagination.limit ?? null, total: pagination.total });
}

const nodeFields: Fields = {
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

const detailFields: Fields = {
  ...nodeFields,
  cpu_usage: isQuantity,
  memory_usage: isQuantity,
  disk_usage: isQuantity,
  created_at: isTime,
  updated_at: isTime,
};

const sessionFields: Fields = {
  customer_id: isReference,
  node_id: isReference,
  started_at: isTime,
  duration_seconds: isQuantity,
  bytes_sent: isQuantity,
  bytes_received: isQuantity,
  country: isText,
};

/** Reads a node of the list (spec, section 2.1); null, with a remark, where it can't be read. */
export function readNodeRecord(json: unknown, onRemark: OnRemark): NodeRecord | null {
  const raw = readable(json, nodeFields, onRemark);
  return raw === null ? null : nodeOf(raw, onRemark);
}

/** Reads a node in detail form (spec, section 2.1); null, with a remark, where it can't be read. */
export function readNodeDetail(json: unknown, onRemark: OnRemark): NodeDetail | null {
  const raw = readable(json, detailFields, onRemark);
  if (raw === null) return null;
  return {
    ...nodeOf(raw, onRemark),
    cpuUsage: quantity(raw.cpu_usage),
    memoryUsage: quantity(raw.memory_usage),
    diskUsage: quantity(raw.disk_usage),
    createdAtMs: time(raw.created_at),
    updatedAtMs: time(raw.updated_at),
  };
}

/** Reads a session of the list (spec, section 2.2); null, with a remark, where it can't be read. */
export function readSessionRecord(json: unknown, onRemark: OnRemark): SessionRecord | null {
  const raw = readable(json, sessionFields, onRemark);
  if (raw === null) return null;
  const id = raw.id as string;
  return {
    id,
    customerId: reference(raw.customer_id),
    nodeId: reference(raw.node_id),
    status: oneOf<SessionStatus>(sessionStatuses, raw.status, "status", "unknown_status", id, onRemark),
    type: oneOf<SessionType>(sessionTypes, raw.session_type, "session_type", "unknown_type", id, onRemark),
    startedAtMs: time(raw.started_at),
    durationSeconds: quantity(raw.duration_seconds),
    bytesSent: quantity(raw.bytes_sent),
    bytesReceived: quantity(raw.bytes_received),
    country: text(raw.country),
  };
}

const statisticsFields: Fields = {
  active_sessions: isQuantity,
  total_sessions_today: isQuantity,
  bandwidth_today_gb: isQuantity,
  peak_concurrent_sessions: isQuantity,
  average_session_duration_seconds: isQuantity,
  top_countries: isList,
  top_protocols: isList,
};

/** Reads the aggregate statistics (spec, section 2.3). An odd field is unknown, an odd entry left out, with a remark. */
export function readStatistics(json: unknown, onRemark: OnRemark): Result<SessionStatistics, ServiceError> {
  const raw = withoutWrong(rawOf(json), statisticsFields, null, onRemark);
  if (Object.keys(statisticsFields).every((field) => (raw[field] ?? null) === null)) {
    return fail({ kind: "wrong_shape", message: "these are not session statistics: none of their fields can be read" });
  }
  return ok({
    activeSessions: quantity(raw.active_sessions),
    sessionsToday: quantity(raw.total_sessions_today),
    bandwidthTodayGb: quantity(raw.bandwidth_today_gb),
    peakConcurrentSessions: quantity(raw.peak_concurrent_sessions),
    averageDurationSeconds: quantity(raw.average_session_duration_seconds),
    topCountries: readTop(raw.top_countries, "country", onRemark).map(({ name, sessions }) => ({
      country: name,
      sessions,
    })),
    topProtocols: readTop(raw.top_protocols, "protocol", onRemark).map(({ name, sessions }) => ({
      protocol: name,
      sessions,
    })),
  });
}

function readTop(entries: unknown, field: string, onRemark: OnRemark) {
  return ((entries ?? []) as readonly unknown[]).flatMap((entry) => {
    const raw = rawOf(entry);
    const [name, sessions] = [raw[field], raw.sessions];
    if (isIdentifier(name) && isQuantity(sessions)) return [{ name, sessions: quantity(sessions) ?? 0 }];
    const right = `an entry has a ${field}, which is ${IDENTIFIER_EXPECTED}, and a number of sessions from 0`;
    onRemark({ reason: "wrong_type", id: null, detail: `found ${describe(entry)}; ${right}` });
    return [];
  });
}

/** Hours that are taken of the hourly statistics: a day has 24, and a service may show some days. */
const HOURS_MAX = 300;

const hourFields: Fields = {
  active_sessions: isQuantity,
  new_sessions: isQuantity,
  bandwidth_gb: isQuantity,
};
const hourlyShape = z.object({ data: z.array(z.unknown()) });

/**
 * Reads the hourly statistics (spec, section 2.4), in the order of time. An odd number is unknown, and an entry whose
 * hour can't be read is left out, with a remark.
 */
export function readHours(json: unknown, onRemark: OnRemark): Result<readonly HourlyEntry[], ServiceError> {
  const parsed = hourlyShape.safeParse(json);
  if (!parsed.success) return fail(wrongShape("hourly statistics", parsed.error));
  const entries = parsed.data.data.slice(0, HOURS_MAX).flatMap((entry) => {
    const { hour } = rawOf(entry);
    const hourMs = isTime(hour) ? time(hour) : null;
    if (hourMs === null) {
      onRemark({ reason: "bad_time", id: null, detail: `found ${describe(entry)}; an hour has a timestamp` });
      return [];
    }
    const raw = withoutWrong(rawOf(entry), hourFields, null, onRemark);
    const activeSessions = quantity(raw.active_sessions);
    return [
      { hourMs, activeSessions, newSessions: quantity(raw.new_sessions), bandwidthGb: quantity(raw.bandwidth_gb) },
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
export function readActionReply(json: unknown): ActionReply {
  const raw = rawOf(json);
  const number = (value: unknown) => (isQuantity(value) ? quantity(value) : null);
  return {
    success: typeof raw.success === "boolean" ? raw.success : null,
    message: isText(raw.message) ? text(raw.message) : null,
    durationMinutes: number(raw.duration_minutes),
    disconnectedSessions: number(raw.disconnected_sessions),
  };
}

/**
 * The record as an object with an id, in which a field that is not what it must be is missing, with a remark; null, with
 * a remark, where there is no object or no id.
 */
function readable(json: unknown, fields: Fields, onRemark: OnRemark): Raw | null {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    onRemark({ reason: "not_an_object", id: null, detail: `found ${describe(json)}; a record is an object` });
    return null;
  }
  const raw = json as Raw;
  if (!isIdentifier(raw.id)) {
    onRemark({ reason: "missing_id", id: null, detail: `id is ${describe(raw.id)}; it is ${IDENTIFIER_EXPECTED}` });
    return null;
  }
  return withoutWrong(raw, fields, raw.id, onRemark);
}

/** The record with its wrong fields missing, and one remark that describes the first of them. */
function withoutWrong(raw: Raw, fields: Fields, id: string | null, onRemark: OnRemark): Raw {
  const wrong = findWrong(raw, fields);
  if (wrong === null) return raw;
  const [{ field, reason, right }, ...others] = wrong;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  onRemark({ reason, id, detail: `${field} is ${describe(raw[field])}; ${right}${more}` });
  return without(raw, wrong);
}

function nodeOf(raw: Raw, onRemark: OnRemark): NodeRecord {
  const id = raw.id as string;
  return {
    id,
    name: text(raw.name),
    status: oneOf<NodeStatus>(nodeStatuses, raw.status, "status", "unknown_status", id, onRemark),
    country: text(raw.country),
    region: text(raw.region),
    ipAddress: text(raw.ip_address),
    version: text(raw.version),
    lastSeenMs: time(raw.last_seen),
    uptimeHours: quantity(raw.uptime_hours),
    activeSessions: quantity(raw.active_sessions),
    bandwidthGb: quantity(raw.bandwidth_gb),
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
  onRemark({ reason, id, detail: `${field} is ${describe(value)}; known are ${[...known].join(", ")}` });
  return "unknown";
}
