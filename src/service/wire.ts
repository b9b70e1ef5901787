import { z } from "zod";
import { fail, ok, type Result } from "../base/result.ts";
import type { RejectReason } from "../metrics/vocabulary.ts";
import { NODE_STATUSES, type NodeDetail, type NodeRecord, type NodeStatus } from "../model/node.ts";
import {
  type HourlyEntry,
  SESSION_STATUSES,
  SESSION_TYPES,
  type SessionRecord,
  type SessionStatistics,
  type SessionStatus,
  type SessionType,
} from "../model/session.ts";
import { clip, type ServiceError } from "./errors.ts";
import { type Fields, findWrong, isIdentifier, isQuantity, isText, isTime, quantity, text, time } from "./fields.ts";

/** A remark on one record. `id` is null where even that could not be read. */
export interface Remark {
  readonly reason: RejectReason;
  readonly id: string | null;
  /** What was found and what would be right. */
  readonly detail: string;
}

/** Called with every remark while records are read. */
export type OnRemark = (remark: Remark) => void;

/** One page of a list (spec, section 2.5), its records still unread. `limit` is what the service echoed, if it did. */
export interface RawPage {
  readonly records: readonly unknown[];
  readonly limit: number | null;
  readonly total: number;
}

const count = z.number().int().min(0);

const pageShape = z.object({
  data: z.array(z.unknown()),
  pagination: z.object({ limit: count.nullish(), total: count }),
});

/** Reads the envelope of a list. */
export function readPage(json: unknown): Result<RawPage, ServiceError> {
  const parsed = pageShape.safeParse(json);
  if (!parsed.success) return wrongShape("a page", parsed.error);
  const { data, pagination } = parsed.data;
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
  customer_id: isText,
  node_id: isText,
  started_at: isTime,
  duration_seconds: isQuantity,
  bytes_sent: isQuantity,
  bytes_received: isQuantity,
  country: isText,
};

type Raw = Readonly<Record<string, unknown>>;

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
    customerId: text(raw.customer_id),
    nodeId: text(raw.node_id),
    status: oneOf<SessionStatus>(sessionStatuses, raw.status, "status", "unknown_status", id, onRemark),
    type: oneOf<SessionType>(sessionTypes, raw.session_type, "session_type", "unknown_type", id, onRemark),
    startedAtMs: time(raw.started_at),
    durationSeconds: quantity(raw.duration_seconds),
    bytesSent: quantity(raw.bytes_sent),
    bytesReceived: quantity(raw.bytes_received),
    country: text(raw.country),
  };
}

const maybeNumber = z.number().min(0).nullish();

const statsShape = z.object({
  active_sessions: maybeNumber,
  total_sessions_today: maybeNumber,
  bandwidth_today_gb: maybeNumber,
  peak_concurrent_sessions: maybeNumber,
  average_session_duration_seconds: maybeNumber,
  top_countries: z.array(z.unknown()).nullish(),
  top_protocols: z.array(z.unknown()).nullish(),
});

/** Entries that are taken of a list within the statistics: there are 249 countries, and a day has 24 hours. */
const ENTRIES_MAX = 300;

/** Reads the aggregate statistics (spec, section 2.3). An odd entry of a top list is left out, with a remark. */
export function readStatistics(json: unknown, onRemark: OnRemark): Result<SessionStatistics, ServiceError> {
  const parsed = statsShape.safeParse(json);
  if (!parsed.success) return wrongShape("session statistics", parsed.error);
  const stats = parsed.data;
  if (Object.keys(stats).length === 0) {
    return fail({ kind: "wrong_shape", message: "these are not session statistics: none of their fields is there" });
  }
  return ok({
    activeSessions: stats.active_sessions ?? null,
    sessionsToday: stats.total_sessions_today ?? null,
    bandwidthTodayGb: stats.bandwidth_today_gb ?? null,
    peakConcurrentSessions: stats.peak_concurrent_sessions ?? null,
    averageDurationSeconds: stats.average_session_duration_seconds ?? null,
    topCountries: readTop(stats.top_countries, "country", onRemark).map(({ name, sessions }) => ({
      country: name,
      sessions,
    })),
    topProtocols: readTop(stats.top_protocols, "protocol", onRemark).map(({ name, sessions }) => ({
      protocol: name,
      sessions,
    })),
  });
}

function readTop(entries: readonly unknown[] | null | undefined, field: string, onRemark: OnRemark) {
  return (entries ?? []).slice(0, ENTRIES_MAX).flatMap((entry) => {
    const raw = (typeof entry === "object" && entry !== null ? entry : {}) as Raw;
    const [name, sessions] = [raw[field], raw.sessions];
    if (isIdentifier(name) && typeof sessions === "number" && sessions >= 0) return [{ name, sessions }];
    const right = `an entry has a ${field} of 1 to 256 characters and a number of sessions from 0`;
    onRemark({ reason: "wrong_type", id: null, detail: `found ${describe(entry)}; ${right}` });
    return [];
  });
}

const hourFields: Fields = {
  hour: isTime,
  active_sessions: isQuantity,
  new_sessions: isQuantity,
  bandwidth_gb: isQuantity,
};
const hourlyShape = z.object({ data: z.array(z.unknown()) });

/** Reads the hourly statistics (spec, section 2.4), in the order of time. An odd hour is left out, with a remark. */
export function readHours(json: unknown, onRemark: OnRemark): Result<readonly HourlyEntry[], ServiceError> {
  const parsed = hourlyShape.safeParse(json);
  if (!parsed.success) return wrongShape("hourly statistics", parsed.error);
  const entries = parsed.data.data.slice(0, ENTRIES_MAX).flatMap((entry) => {
    const raw = (typeof entry === "object" && entry !== null ? entry : {}) as Raw;
    const wrong = findWrong(raw, hourFields);
    const hourMs = wrong === null ? time(raw.hour) : null;
    if (hourMs === null) {
      const detail = `found ${describe(entry)}; an hour has a timestamp and numbers from 0`;
      onRemark({ reason: wrong?.reason ?? "bad_time", id: null, detail });
      return [];
    }
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
  const raw = (typeof json === "object" && json !== null ? json : {}) as Raw;
  const number = (value: unknown) => (isQuantity(value) ? quantity(value) : null);
  return {
    success: typeof raw.success === "boolean" ? raw.success : null,
    message: isText(raw.message) ? text(raw.message) : null,
    durationMinutes: number(raw.duration_minutes),
    disconnectedSessions: number(raw.disconnected_sessions),
  };
}

/** The record as an object with an id and fields of the right types; null, with a remark, otherwise. */
function readable(json: unknown, fields: Fields, onRemark: OnRemark): Raw | null {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    onRemark({ reason: "not_an_object", id: null, detail: `found ${describe(json)}; a record is an object` });
    return null;
  }
  const raw = json as Raw;
  if (!isIdentifier(raw.id)) {
    onRemark({
      reason: "missing_id",
      id: null,
      detail: `id is ${describe(raw.id)}; it is a text of 1 to 256 characters`,
    });
    return null;
  }
  const wrong = findWrong(raw, fields);
  if (wrong === null) return raw;
  onRemark({
    reason: wrong.reason,
    id: raw.id,
    detail: `${wrong.field} is ${describe(raw[wrong.field])}; ${wrong.right}`,
  });
  return null;
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

function wrongShape(what: string, error: z.ZodError): Result<never, ServiceError> {
  const issue = error.issues[0]!;
  const where = issue.path.length === 0 ? "the body" : issue.path.join(".");
  return fail({ kind: "wrong_shape", message: `this is not ${what}: ${where}: ${issue.message}` });
}

const describe = (value: unknown): string => (value === undefined ? "missing" : clip(JSON.stringify(value)));
