import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { actionReserveOf, type Lane, type Limits, pollingConcurrency } from "./limits.ts";

/**
 * An abandoned call counts for this long, because the service may not notice that its client left, and continue to work
 * on it. Gateways usually end a request after 60 s.
 */
export const ABANDONED_MS: DurationMs = MINUTE_MS;

/**
 * Creates the calls of a new process. The previous one may have abandoned as many as it was allowed to make, including
 * those for actions, so polling may make only the others for {@link ABANDONED_MS}, but at least one.
 */
export function createConcurrentCalls(limits: Limits, now: MonotonicMs) {
  const cap = limits.plan.concurrentRequests ?? Number.POSITIVE_INFINITY;
  const others = Math.max(1, cap - allowedCalls(limits, "action"));
  const abandoned = Number.isFinite(cap) ? Math.max(0, allowedCalls(limits, "walk") - others) : 0;
  return {
    inFlight: 0,
    /** Until when each call counts that was abandoned without a response, earliest first. */
    abandonedUntil: Array<MonotonicMs>(abandoned).fill(now + ABANDONED_MS),
  };
}

/** Calls that count toward the plan's limit on concurrent requests. */
type ConcurrentCalls = ReturnType<typeof createConcurrentCalls>;

/** Records that a call ended. `isAbandoned`: its client left without a response. */
export function endCall(calls: ConcurrentCalls, isAbandoned: boolean, now: MonotonicMs): void {
  calls.inFlight--;
  if (isAbandoned) calls.abandonedUntil.push(now + ABANDONED_MS);
}

/** Returns when the plan allows another concurrent call of `lane`; Infinity if a call in flight must end first. */
export function concurrencyAvailableAt(
  { inFlight, abandonedUntil }: ConcurrentCalls,
  limits: Limits,
  lane: Lane,
  now: MonotonicMs,
): MonotonicMs {
  while ((abandonedUntil[0] ?? Number.POSITIVE_INFINITY) <= now) abandonedUntil.shift();
  const excess = inFlight + abandonedUntil.length - allowedCalls(limits, lane);
  return excess < 0 ? now : (abandonedUntil[excess] ?? Number.POSITIVE_INFINITY);
}

/** Returns the maximum number of concurrent calls of all lanes, including one of `lane`. */
function allowedCalls(limits: Limits, lane: Lane): number {
  const polling = pollingConcurrency(limits);
  const cap = limits.plan.concurrentRequests;
  if (polling === null || cap === null) return Number.POSITIVE_INFINITY;
  return polling + (lane === "action" ? actionReserveOf(cap - polling) : 0);
}
