import { HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import { ok } from "../../base/result.ts";
import type { EpochMs } from "../../model/time.ts";
import { COUNTRIES } from "../fleet/locations.ts";
import { sessionId } from "../fleet/node-identity.ts";
import { clockSkewAt } from "../http/faults.ts";
import { sessionsAt } from "../sessions/count-history.ts";
import {
  bytesOfAll,
  countSessions,
  gigabytes,
  OPEN_STATES,
  SESSION_STATES,
  sessionsIn,
} from "../sessions/population.ts";
import {
  type EndpointCall,
  type EndpointResult,
  endpointError,
  findFault,
  type ServiceBackend,
} from "./endpoint-context.ts";
import { sessionsInOrder } from "./list-order.ts";
import { answerPage } from "./paging.ts";
import { detailedSession, listedSession } from "./session-view.ts";

const TOP_COUNTRIES = 10;

/**
 * GET /v1/sessions (spec, section 4.6). Without a filter it lists open sessions, and ended ones with
 * `listEndedSessions`.
 */
export function listSessions(call: EndpointCall): EndpointResult {
  const { service, at, query } = call;
  const status = query.get("status");
  if (status !== null && !(SESSION_STATES as readonly string[]).includes(status)) {
    const message = `status must be one of ${SESSION_STATES.join(", ")}, not ${JSON.stringify(status)}`;
    return endpointError(400, "invalid_status", message);
  }
  const listed = service.options.listEndedSessions ? SESSION_STATES : OPEN_STATES;
  const states = listed.filter((state) => status === null || state === status);
  const options = service.options.sessionList;
  const length = countSessions(service.world.traffic.population.counts, states);
  const lagging =
    options.totalLagMs === 0 ? null : sessionsAt(service.world.countHistory, states, at - options.totalLagMs);
  return answerPage(call, {
    options,
    length,
    counted: lagging ?? length,
    slice: (from, to) => sessionsInOrder(service, states, [from, to], at),
    recordOf: (session) => listedSession(service, session, at),
  });
}

/**
 * GET /v1/sessions/{id} (spec, section 4.7). An ended session can be read for some minutes, even if it is not listed.
 */
export function readSession({ service, id, at }: EndpointCall): EndpointResult {
  const { seed, traffic } = service.world;
  const found = sessionsIn(traffic.population, SESSION_STATES).find(({ number }) => sessionId(seed, number) === id);
  if (found === undefined) {
    return endpointError(404, "session_not_found", `There is no session ${JSON.stringify(id)}`);
  }
  return ok({ status: 200, value: detailedSession(service, found, at) });
}

/**
 * GET /v1/sessions/stats (spec, section 4.8). The numbers describe active sessions. The average duration is their mean
 * age. Websocket sessions count as https because the spec has only three protocols there.
 */
export function readStatistics({ service, at, activeFaults }: EndpointCall): EndpointResult {
  const extraLabels = Array.from({ length: findFault(activeFaults, "many_labels")?.values ?? 0 }, (_, value) => value);
  const { traffic, hours, startMs } = service.world;
  const { population } = traffic;
  const elapsed = at - startMs;
  const active = sessionsIn(population, ["active"]);
  const byCountry = Map.groupBy(active, ({ node }) => node.country);
  const byType = Map.groupBy(active, ({ type }) => (type === "websocket" ? "https" : type));
  const ageMs = active.reduce((sum, { startedAt }) => sum + elapsed - startedAt, 0);
  return ok({
    status: 200,
    value: {
      active_sessions: active.length,
      total_sessions_today: population.enteredCount - hours.dayEntered,
      bandwidth_today_gb: gigabytes(bytesOfAll(population, elapsed) - hours.dayBytes),
      peak_concurrent_sessions: population.peakActive,
      average_session_duration_seconds: Math.floor(ageMs / Math.max(1, active.length) / SECOND_MS),
      top_countries: COUNTRIES.map((country) => ({ country, sessions: byCountry.get(country)?.length ?? 0 }))
        .filter(({ sessions }) => sessions > 0)
        .sort((one, other) => other.sessions - one.sessions)
        .slice(0, TOP_COUNTRIES)
        .concat(extraLabels.map((value) => ({ country: `country_${value}`, sessions: 1 }))),
      top_protocols: (["socks5", "http", "https"] as const)
        .map((protocol): { protocol: string; sessions: number } => ({
          protocol,
          sessions: byType.get(protocol)?.length ?? 0,
        }))
        .sort((one, other) => other.sessions - one.sessions)
        .concat(extraLabels.map((value) => ({ protocol: `protocol_${value}`, sessions: 1 }))),
    },
  });
}

/** GET /v1/sessions/stats/hourly (spec, section 4.9): the last 24 whole hours, oldest first. */
export function readHourly({ service }: EndpointCall): EndpointResult {
  const data = service.world.hours.history.map((hour) => ({
    hour: wholeHour(service, hour.startMs),
    active_sessions: hour.active,
    new_sessions: hour.entered,
    bandwidth_gb: gigabytes(hour.bytes),
  }));
  return ok({ status: 200, value: { data } });
}

/** Formats the start of an hour, rounded to a full hour on the service's skewed clock. */
function wholeHour({ world }: ServiceBackend, startMs: EpochMs): string {
  const labeled = Math.round((startMs + clockSkewAt(world.faultSchedule, startMs)) / HOUR_MS) * HOUR_MS;
  return new Date(labeled).toISOString();
}
