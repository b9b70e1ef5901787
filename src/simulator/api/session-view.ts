import { SECOND_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { customerId, sessionId, sessionIdentity } from "../fleet/node-identity.ts";
import { hash, hashUnit } from "../hash.ts";
import { bytesMovedBy, type Session } from "../sessions/population.ts";
import { type ServiceBackend, serviceTimestamp } from "./endpoint-context.ts";

/** Range of the share of a session's bytes that the client sent. */
const SENT_SHARE_MIN = 0.04;
const SENT_SHARE_SPREAD = 0.3;
const ERRORS_MAX = 5;

/** A session in the list form. */
export type ListedSession = ReturnType<typeof listedSession>;

/** A session in the detail form. */
export type DetailedSession = ReturnType<typeof detailedSession>;

/** Returns the list form (spec, section 2.2) of a session at `at`. */
export function listedSession(service: ServiceBackend, session: Session, at: EpochMs) {
  const { seed, startMs } = service.world;
  const { number, startedAt, endedAt } = session;
  const elapsed = at - startMs;
  const { targetHost, targetPort } = sessionIdentity(seed, number);
  const bytes = bytesMovedBy(session, elapsed);
  const sent = Math.floor(bytes * (SENT_SHARE_MIN + SENT_SHARE_SPREAD * hashUnit(seed ^ 0x5e27, number)));
  return {
    id: sessionId(seed, number),
    customer_id: customerId(seed, session.customer),
    node_id: session.node.id,
    status: session.state,
    started_at: serviceTimestamp(service, startMs + startedAt),
    duration_seconds: Math.floor(((Number.isNaN(endedAt) ? elapsed : endedAt) - startedAt) / SECOND_MS),
    bytes_sent: sent,
    bytes_received: bytes - sent,
    target_host: targetHost,
    target_port: targetPort,
    country: session.node.country,
    session_type: session.type,
  };
}

/** Returns the detail form (spec, section 2.2) of a session at `at`. */
export function detailedSession(service: ServiceBackend, session: Session, at: EpochMs) {
  const { seed, startMs } = service.world;
  const { number, state, idleSince, transferringSince } = session;
  const { userAgent, clientIp } = sessionIdentity(seed, number);
  return {
    ...listedSession(service, session, at),
    protocol: "tcp",
    user_agent: userAgent,
    client_ip: clientIp,
    error_count: state === "error" ? 1 + (hash(seed ^ 0xe220, number) % ERRORS_MAX) : 0,
    last_activity: serviceTimestamp(service, Number.isNaN(transferringSince) ? startMs + idleSince : at),
  };
}
