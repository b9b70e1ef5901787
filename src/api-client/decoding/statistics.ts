import { ok, type Result } from "../../base/result.ts";
import type { HourlyEntry, SessionStatistics, TopList } from "../../model/session.ts";
import { type ApiError, describeJson } from "../errors.ts";
import { asRawRecord } from "../json-body.ts";
import {
  IDENTIFIER_EXPECTED,
  isIdentifier,
  LIST,
  type OnProblem,
  QUANTITY,
  type RecordFields,
  readFields,
  TIME,
} from "./fields.ts";
import { wrongShape } from "./records.ts";

const STATISTICS_FIELDS = {
  activeSessions: { field: "active_sessions", kind: QUANTITY },
  sessionsToday: { field: "total_sessions_today", kind: QUANTITY },
  bandwidthTodayGb: { field: "bandwidth_today_gb", kind: QUANTITY },
  peakConcurrentSessions: { field: "peak_concurrent_sessions", kind: QUANTITY },
  averageDurationSeconds: { field: "average_session_duration_seconds", kind: QUANTITY },
  topCountries: { field: "top_countries", kind: LIST },
  topProtocols: { field: "top_protocols", kind: LIST },
} satisfies RecordFields;

/**
 * Decodes the aggregate statistics (spec, section 2.3). Invalid fields are null and invalid entries omitted, with a
 * problem.
 */
export function decodeStatistics(json: unknown, onProblem: OnProblem): Result<SessionStatistics, ApiError> {
  const values = readFields(asRawRecord(json), STATISTICS_FIELDS, {}, onProblem);
  if (Object.values(values).every((value) => value === null)) {
    return wrongShape("session statistics", "none of their fields can be read");
  }
  return ok({
    ...values,
    topCountries: decodeTopList(values.topCountries, "country", onProblem),
    topProtocols: decodeTopList(values.topProtocols, "protocol", onProblem),
  });
}

function decodeTopList(entries: readonly unknown[] | null, field: string, onProblem: OnProblem): TopList {
  return (entries ?? []).flatMap((entry) => {
    const { [field]: name, sessions } = asRawRecord(entry);
    const count = QUANTITY.read(sessions);
    if (isIdentifier(name) && typeof count === "number") return [[name, count] as const];
    const expected = `an entry has a ${field}, which is ${IDENTIFIER_EXPECTED}, and a non-negative number of sessions`;
    onProblem({ reason: "wrong_type", id: null, detail: `found ${describeJson(entry)}; ${expected}` });
    return [];
  });
}

/** Maximum number of hours in the hourly statistics, the newest ones. A service may return several days. */
const HOURS_MAX = 300;

const HOUR_FIELDS = {
  activeSessions: { field: "active_sessions", kind: QUANTITY },
  newSessions: { field: "new_sessions", kind: QUANTITY },
  bandwidthGb: { field: "bandwidth_gb", kind: QUANTITY },
} satisfies RecordFields;

/**
 * Decodes the hourly statistics (spec, section 2.4): at most {@link HOURS_MAX} entries, sorted by time. Invalid numbers
 * are null, and entries with an invalid hour are omitted, with a problem.
 */
export function decodeHourly(json: unknown, onProblem: OnProblem): Result<readonly HourlyEntry[], ApiError> {
  const { data } = asRawRecord(json);
  if (!Array.isArray(data))
    return wrongShape("hourly statistics", `data: expected a list, found ${describeJson(data)}`);
  const entries = data.flatMap((entry) => {
    const raw = asRawRecord(entry);
    const hourMs = TIME.read(raw.hour) ?? null;
    if (hourMs === null) {
      onProblem({ reason: "bad_time", id: null, detail: `found ${describeJson(entry)}; an hour has a timestamp` });
      return [];
    }
    return [readFields(raw, HOUR_FIELDS, { hourMs }, onProblem)];
  });
  return ok(entries.sort((a, b) => a.hourMs - b.hourMs).slice(-HOURS_MAX));
}
