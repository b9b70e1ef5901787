import { HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import { ok } from "../../base/result.ts";
import type { EpochMs } from "../../model/time.ts";
import { COUNTRIES } from "../fleet/locations.ts";
import { sessionSlot } from "../fleet/node-identity.ts";
import { clockSkewAt } from "../http/faults.ts";
import { countedBytes, gigabytes } from "../sessions/byte-counter.ts";
import { sessionsAt } from "../sessions/count-history.ts";
import type { GroupMask } from "../sessions/ordered-groups.ts";
import { isReadable, SESSION_KINDS, SESSION_STATES, STATE_INDEX } from "../sessions/sessions.ts";
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

const OPEN_STATES: GroupMask = (1 << STATE_INDEX.connecting) | (1 << STATE_INDEX.active);
const ALL_STATES: GroupMask = (1 << SESSION_STATES.length) - 1;
const TOP_COUNTRIES = 10;

/**
 * GET /v1/sessions (spec, section 4.6). Without a filter it lists open sessions, and ended ones with
 * `listEndedSessions`.
 */
export function listSessions(call: EndpointCall): EndpointResult {
  const { service, at, query } = call;
  const listed = service.options.listEndedSessions ? ALL_STATES : OPEN_STATES;
  const status = query.get("status");
  const state = status === null ? -1 : (SESSION_STATES as readonly string[]).indexOf(status);
  if (status !== null && state === -1) {
    const message = `status must be one of ${SESSION_STATES.join(", ")}, not ${JSON.stringify(status)}`;
    return endpointError(400, "invalid_status", message);
  }
  const groups = status === null ? listed : listed & (1 << state);
  const { ordered } = service.network.traffic.population.sessions;
  const options = service.options.sessionList;
  const length = ordered.count(groups);
  const lagging =
    options.totalLagMs === 0 ? null : sessionsAt(service.network.countHistory, groups, at - options.totalLagMs);
  return answerPage(call, {
    options,
    length,
    counted: lagging ?? length,
    slice: (from, to) => sessionsInOrder(service, groups, [from, to], at),
    recordOf: (slot) => listedSession(service, slot, at),
  });
}

/**
 * GET /v1/sessions/{id} (spec, section 4.7). An ended session can be read for some minutes, even if it is not listed.
 */
export function readSession({ service, id, at }: EndpointCall): EndpointResult {
  const { seed, traffic } = service.network;
  const { sessions } = traffic.population;
  const found = sessionSlot(seed, id);
  if (found === null || !isReadable(sessions, found.slot, found.generation)) {
    return endpointError(404, "session_not_found", `There is no session ${JSON.stringify(id)}`);
  }
  return ok({ status: 200, value: detailedSession(service, found.slot, at) });
}

/**
 * GET /v1/sessions/stats (spec, section 4.8). The counts by country and protocol are of active sessions, and the
 * average duration is their mean age. Websocket sessions count as https because the spec has only three protocols
 * there.
 */
export function readStatistics({ service, at, activeFaults }: EndpointCall): EndpointResult {
  const extraLabels = Array.from({ length: findFault(activeFaults, "many_labels")?.values ?? 0 }, (_, value) => value);
  const { traffic, hours, startMs } = service.network;
  const { population } = traffic;
  const { active } = population.all;
  const elapsed = at - startMs;
  const ofType = (type: (typeof SESSION_KINDS)[number]): number => population.byType[SESSION_KINDS.indexOf(type)]!;
  return ok({
    status: 200,
    value: {
      active_sessions: active,
      total_sessions_today: population.enteredCount - hours.dayEntered,
      bandwidth_today_gb: gigabytes(countedBytes(population.all, elapsed) - hours.dayBytes),
      peak_concurrent_sessions: population.peakActive,
      average_session_duration_seconds:
        active === 0 ? 0 : Math.floor((elapsed - population.startSum / active) / SECOND_MS),
      top_countries: COUNTRIES.map((country, index) => ({ country, sessions: population.byCountry[index]! }))
        .filter(({ sessions }) => sessions > 0)
        .sort((one, other) => other.sessions - one.sessions)
        .slice(0, TOP_COUNTRIES)
        .concat(extraLabels.map((value) => ({ country: `country_${value}`, sessions: 1 }))),
      top_protocols: [
        { protocol: "socks5", sessions: ofType("socks5") },
        { protocol: "http", sessions: ofType("http") },
        { protocol: "https", sessions: ofType("https") + ofType("websocket") },
      ]
        .sort((one, other) => other.sessions - one.sessions)
        .concat(extraLabels.map((value) => ({ protocol: `protocol_${value}`, sessions: 1 }))),
    },
  });
}

/** GET /v1/sessions/stats/hourly (spec, section 4.9): the last 24 whole hours, oldest first. */
export function readHourly({ service }: EndpointCall): EndpointResult {
  const data = service.network.hours.history.map((hour) => ({
    hour: wholeHour(service, hour.startMs),
    active_sessions: hour.active,
    new_sessions: hour.entered,
    bandwidth_gb: gigabytes(hour.bytes),
  }));
  return ok({ status: 200, value: { data } });
}

/** Formats the start of an hour, rounded to a full hour on the service's skewed clock. */
function wholeHour({ network }: ServiceBackend, startMs: EpochMs): string {
  const labeled = Math.round((startMs + clockSkewAt(network.faultSchedule, startMs)) / HOUR_MS) * HOUR_MS;
  return new Date(labeled).toISOString();
}
