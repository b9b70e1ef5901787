import { MINUTE_MS } from "../../base/duration.ts";
import type { FaultKind } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { gatewayLimitReply, interceptedReply } from "./error-replies.ts";
import type { ActiveFault } from "./faults.ts";
import { createLimiter, type Limiter } from "./limiter.ts";
import type { Reply } from "./reply.ts";

/** Gateways in front of the service, by the fault that put each there, and what each has counted. */
export type GatewayLimiters = WeakMap<FaultKind, Limiter>;

/** Creates the state of gateways that have counted nothing. */
export const createGatewayLimiters = (): GatewayLimiters => new WeakMap();

/**
 * Returns the reply of a gateway in front of the service; null if every gateway passes the request on. The service does
 * not see, and so does not count, what a gateway answers. `serviceNow` is on the clock of the service.
 */
export function gatewayReply(
  gateways: GatewayLimiters,
  activeFaults: readonly ActiveFault[],
  at: EpochMs,
  serviceNow: EpochMs,
): Reply | null {
  for (const { fault } of activeFaults) {
    if (fault.kind === "status" && fault.bare === true) return interceptedReply(fault, serviceNow);
    if (fault.kind === "gateway_limit" && !limiterOf(gateways, fault).take(at).admitted) {
      return gatewayLimitReply(fault.retryAfterSeconds);
    }
  }
  return null;
}

function limiterOf(gateways: GatewayLimiters, fault: Extract<FaultKind, { kind: "gateway_limit" }>): Limiter {
  const known = gateways.get(fault);
  if (known !== undefined) return known;
  const size = { limit: fault.requestsPerMinute, burst: fault.burst, windowMs: MINUTE_MS };
  const fresh = createLimiter("token_bucket", size);
  gateways.set(fault, fresh);
  return fresh;
}
