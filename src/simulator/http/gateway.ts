import { MINUTE_MS } from "../../base/duration.ts";
import type { FaultKind } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { gatewayLimitReply, interceptedReply } from "./error-replies.ts";
import type { ActiveFault } from "./faults.ts";
import { createLimiter, type Limiter } from "./limiter.ts";
import type { Reply } from "./reply.ts";

/** Limiters of the gateways in front of the service, by fault. */
export type GatewayLimiters = WeakMap<FaultKind, Limiter>;

/**
 * Returns the reply of a gateway in front of the service, or null if the request is passed on. The service does not
 * count requests that a gateway answers. `serviceNow` is on the service's clock.
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
      return gatewayLimitReply(fault.retryAfter);
    }
  }
  return null;
}

function limiterOf(gateways: GatewayLimiters, fault: Extract<FaultKind, { kind: "gateway_limit" }>): Limiter {
  const known = gateways.get(fault);
  if (known !== undefined) return known;
  const { requestsPerMinute: limit, burst } = fault;
  const limiter = createLimiter("token_bucket", { limit, burst, windowMs: MINUTE_MS });
  gateways.set(fault, limiter);
  return limiter;
}
