import { ok, type Result } from "../../base/result.ts";
import type { HourlyEntry, SessionStatistics, TopList } from "../../model/session.ts";
import { type ApiError, describeJson } from "../errors.ts";
import { asRawRecord } from "../json-body.ts";
import {
  dropInvalidFields,
  type FieldChecks,
  IDENTIFIER_EXPECTED,
  isIdentifier,
  isList,
  isQuantity,
  isTime,
  quantityOrNull,
  readTime,
} from "./fields.ts";
import { type OnProblem, wrongShape } from "./records.ts";

const statisticsFields: FieldChecks = {
  active_sessions: isQuantity,
  total_sessions_today: isQuantity,
  bandwidth_today_gb: isQuantity,
  peak_concurrent_sessions: isQuantity,
  average_session_duration_seconds: isQuantity,
  top_countries: isList,
  top_protocols: isList,
};

/**
 * Decodes the aggregate statistics (spec, section 2.3). Invalid fields are null and invalid entries omitted, with a
 * problem.
 */
export function decodeStatistics(json: unknown, onProblem: OnProblem): Result<SessionStatistics, ApiError> {
  const raw = dropInvalidFields(asRawRecord(json), statisticsFields, null, onProblem);
  if (Object.keys(statisticsFields).every((field) => (raw[field] ?? null) === null)) {
    return wrongShape("session statistics", "none of their fields can be read");
  }
  return ok({
    activeSessions: quantityOrNull(raw.active_sessions),
    sessionsToday: quantityOrNull(raw.total_sessions_today),
    bandwidthTodayGb: quantityOrNull(raw.bandwidth_today_gb),
    peakConcurrentSessions: quantityOrNull(raw.peak_concurrent_sessions),
    averageDurationSeconds: quantityOrNull(raw.average_session_duration_seconds),
    topCountries: decodeTopList(raw.top_countries, "country", onProblem),
    topProtocols: decodeTopList(raw.top_protocols, "protocol", onProblem),
  });
}

function decodeTopList(entries: unknown, field: string, onProblem: OnProblem): TopList {
  return ((entries ?? []) as readonly unknown[]).flatMap((entry) => {
    const { [field]: name, sessions } = asRawRecord(entry);
    if (isIdentifier(name) && isQuantity(sessions)) return [[name, quantityOrNull(sessions) ?? 0] as const];
    const expected = `an entry has a ${field}, which is ${IDENTIFIER_EXPECTED}, and a non-negative number of sessions`;
    onProblem({ reason: "wrong_type", id: null, detail: `found ${describeJson(entry)}; ${expected}` });
    return [];
  });
}

/** Maximum number of hours in the hourly statistics, the newest ones. A service may return several days. */
const HOURS_MAX = 300;

const hourFields: FieldChecks = {
  active_sessions: isQuantity,
  new_sessions: isQuantity,
  bandwidth_gb: isQuantity,
};

/**
 * Decodes the hourly statistics (spec, section 2.4), sorted by time. Invalid numbers are null, and entries with an
 * invalid hour are omitted, with a problem.
 */
export function decodeHourly(json: unknown, onProblem: OnProblem): Result<readonly HourlyEntry[], ApiError> {
  const { data } = asRawRecord(json);
  if (!Array.isArray(data))
    return wrongShape("hourly statistics", `data: expected a list, found ${describeJson(data)}`);
  const entries = data.flatMap((entry) => {
    const { hour } = asRawRecord(entry);
    const hourMs = isTime(hour) ? readTime(hour) : null;
    if (hourMs === null) {
      onProblem({ reason: "bad_time", id: null, detail: `found ${describeJson(entry)}; an hour has a timestamp` });
      return [];
    }
    const raw = dropInvalidFields(asRawRecord(entry), hourFields, null, onProblem);
    const [activeSessions, newSessions] = [quantityOrNull(raw.active_sessions), quantityOrNull(raw.new_sessions)];
    return [{ hourMs, activeSessions, newSessions, bandwidthGb: quantityOrNull(raw.bandwidth_gb) }];
  });
  return ok(entries.sort((a, b) => a.hourMs - b.hourMs).slice(-HOURS_MAX));
}
