import { SECOND_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { COUNTRIES } from "../fleet/locations.ts";
import { customerId, nodeId, sessionId, sessionIdentity } from "../fleet/node-identity.ts";
import { hash, hashUnit } from "../hash.ts";
import { bytesMovedBy, SESSION_KINDS, SESSION_STATES, STATE_INDEX } from "../sessions/sessions.ts";
import { type ServiceBackend, serviceTimestamp } from "./endpoint-context.ts";

/** Range of the share of a session's bytes that the client sent. */
const SENT_SHARE_MIN = 0.04;
const SENT_SHARE_SPREAD = 0.3;
const ERRORS_MAX = 5;

/** A session in the detail form. */
export type DetailedSession = ReturnType<typeof detailedSession>;

/** Returns the list form (spec, section 2.2) of the session in `slot` at `at`. */
export function listedSession(service: ServiceBackend, slot: number, at: EpochMs) {
  const { seed, startMs, traffic } = service.network;
  const { sessions } = traffic.population;
  const elapsed = at - startMs;
  const generation = sessions.generation[slot]!;
  const { targetHost, targetPort } = sessionIdentity(seed, slot, generation);
  const endedAt = sessions.endedAt[slot]!;
  const startedAt = sessions.startedAt[slot]!;
  const bytes = bytesMovedBy(sessions, slot, elapsed);
  const sent = Math.floor(bytes * (SENT_SHARE_MIN + SENT_SHARE_SPREAD * hashUnit(seed ^ 0x5e27, slot, generation)));
  return {
    id: sessionId(seed, slot, generation),
    customer_id: customerId(seed, sessions.customer[slot]!),
    node_id: nodeId(seed, sessions.node[slot]!),
    status: SESSION_STATES[sessions.state[slot]!]!,
    started_at: serviceTimestamp(service, startMs + startedAt),
    duration_seconds: Math.floor(((Number.isNaN(endedAt) ? elapsed : endedAt) - startedAt) / SECOND_MS),
    bytes_sent: sent,
    bytes_received: bytes - sent,
    target_host: targetHost,
    target_port: targetPort,
    country: COUNTRIES[sessions.country[slot]!]!,
    session_type: SESSION_KINDS[sessions.type[slot]!]!,
  };
}

/** Returns the detail form of the session in `slot` at `at`. */
export function detailedSession(service: ServiceBackend, slot: number, at: EpochMs) {
  const { seed, startMs, traffic } = service.network;
  const { sessions } = traffic.population;
  const generation = sessions.generation[slot]!;
  const { userAgent, clientIp } = sessionIdentity(seed, slot, generation);
  const failed = sessions.state[slot] === STATE_INDEX.error;
  const isTransferring = !Number.isNaN(sessions.transferringSince[slot]!);
  return {
    ...listedSession(service, slot, at),
    protocol: "tcp",
    user_agent: userAgent,
    client_ip: clientIp,
    error_count: failed ? 1 + (hash(seed ^ 0xe220, slot, generation) % ERRORS_MAX) : 0,
    last_activity: serviceTimestamp(service, isTransferring ? at : startMs + sessions.idleSince[slot]!),
  };
}
