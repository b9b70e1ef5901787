import type { CallAttemptDeps } from "../../api-client/call-attempt.ts";
import { createRateLimiter } from "../../api-client/rate-limiter.ts";
import { createServiceClock } from "../../api-client/service-clock.ts";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { ConfigResources } from "../../daemon/config-resources.ts";
import { createMemoryStateStore } from "../../journal/sqlite/store.ts";
import { createSystemClock } from "../../platform/clock.ts";

/** Timeout of each call. */
export const SERVICE_TIMEOUT_MS: DurationMs = 10 * SECOND_MS;

/**
 * Returns what a command needs to call the service within the configured limits. Its calls are not counted in the state
 * of the daemon, which sees them as external usage.
 */
export function createServiceAccess(
  { settings, secret, transport }: ConfigResources,
  agent: string,
): CallAttemptDeps & { readonly random: () => number } {
  const clock = createSystemClock();
  const ignore = () => {};
  const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const { limits, monthStartsOn } = settings;
  const { calls } = createMemoryStateStore();
  const random = Math.random;
  return {
    ...{ clock, secret, transport, random, agent },
    rateLimiter: createRateLimiter({ limits, monthStartsOn, clock, random, calls, log, onWait: ignore }),
    timeoutMs: SERVICE_TIMEOUT_MS,
    serviceClock: createServiceClock(),
  };
}
