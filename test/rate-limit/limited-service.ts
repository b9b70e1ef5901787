import { byName } from "../../src/base/by-name.ts";
import { LIMITER_KINDS, type LimiterKind } from "../../src/config/schema/scenario.ts";
import { CATEGORIES, type Category, type Limits, type PLANS } from "../../src/rate-limit/limits.ts";
import { createLimiter, type Limiter } from "../../src/simulator/http/limiter.ts";
import { createPlanLimits } from "../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../harness/run-length.ts";

/** Rate limits of a service, and how it states them. */
export interface LimiterSetup {
  readonly limits: Limits;
  readonly limiter: LimiterKind;
  readonly headers: "category" | "plan" | "off";
  readonly reset: "full" | "next_token";
  /** Gateway in front of the service. Absent if there is none. */
  readonly gateway?: Gateway;
}

/** A gateway in front of the service, which does not count the calls that the gateway rejects. */
export interface Gateway {
  readonly limiter: LimiterKind;
  readonly requestsPerMinute: number;
  readonly burst: number;
  /** Whether its 429s have a correct Retry-After. */
  readonly retryAfter: boolean;
  /** Whether its 429s state its limit. */
  readonly statesLimit: boolean;
  /** When it is removed. */
  readonly untilMs: number;
}

/** All kinds of limiters and headers. */
export const HEADERS = ["category", "plan", "off"] as const;
export const LIMITER_SETUPS = LIMITER_KINDS.flatMap((limiter) => HEADERS.map((headers) => ({ limiter, headers })));
/** Setups for simulated hours: in the short form every second one, with each limiter and each kind of headers among them. */
export const HOURS_SETUPS = LIMITER_SETUPS.filter((_, index) => isLongRun || index % 2 === 0);

/** The limits of one of the spec's plans, without a limit per month. */
export function limitsWithoutPlan(plan: keyof typeof PLANS): Limits {
  const limits = createPlanLimits(plan);
  return { ...limits, plan: { ...limits.plan, callsPerMonth: null } };
}

/** Length of the windows of all limits. */
export const WINDOW_MS = 60_000;

/** Returns limits under which polling may make 80 of 100 node calls per window, and actions may use 10 of the reserve. */
export const limitsWith = (requestsPerMinute: number | null = null): Limits => ({
  categories: {
    node_management: { requests: 100, burst: 200, windowMs: WINDOW_MS },
    session_monitoring: { requests: 500, burst: 500, windowMs: WINDOW_MS },
  },
  plan: { requestsPerMinute, concurrentRequests: null, callsPerMonth: null },
  reserve: 0.2,
});

/** What a response states about the limits. */
export interface StatedHeaders {
  readonly kind: "answered" | "rate_limited";
  readonly headers: { limit: number; remaining: number; resetEpochSeconds: number } | null;
  readonly dateMs: number;
  readonly retryAfterSeconds: number | null;
}

const EPOCH_MS = Date.UTC(2026, 0, 1);

/** Creates a service that only applies its rate limits, with the limiters of the simulator. */
export function createLimitedService({ limits, limiter, headers, reset, gateway }: LimiterSetup) {
  const limiterOf = (requests: number, burst: number): Limiter =>
    createLimiter(limiter, { limit: requests, burst, windowMs: 60_000, reset });
  const categories = byName(CATEGORIES, (category) => {
    const { requests, burst } = limits.categories[category];
    return limiterOf(requests, burst);
  });
  const { requestsPerMinute } = limits.plan;
  const plan = requestsPerMinute === null ? null : limiterOf(requestsPerMinute, requestsPerMinute);
  const gatewayLimiter =
    gateway === undefined
      ? null
      : createLimiter(gateway.limiter, {
          limit: gateway.requestsPerMinute,
          burst: gateway.burst,
          windowMs: 60_000,
        });
  return {
    /** Responds to a call. */
    answer(category: Category, now: number): StatedHeaders {
      const epoch = EPOCH_MS + now;
      const passed = gatewayLimiter === null || now >= gateway!.untilMs ? null : gatewayLimiter.take(epoch);
      if (passed?.admitted === false) {
        const retryAfterSeconds = gateway!.retryAfter ? passed.retryAfterSeconds : null;
        const { limit, resetEpochMs } = passed;
        const stated = { limit, remaining: 0, resetEpochSeconds: Math.ceil(resetEpochMs / 1_000) };
        return {
          kind: "rate_limited",
          headers: gateway!.statesLimit ? stated : null,
          dateMs: epoch,
          retryAfterSeconds,
        };
      }
      const admitted = categories[category].peek(epoch).admitted && (plan?.peek(epoch).admitted ?? true);
      const ofCategory = admitted ? categories[category].take(epoch) : categories[category].peek(epoch);
      const ofPlan = admitted ? plan?.take(epoch) : plan?.peek(epoch);
      const shown = headers === "plan" ? (ofPlan ?? ofCategory) : ofCategory;
      return {
        kind: admitted ? "answered" : "rate_limited",
        headers:
          headers === "off"
            ? null
            : {
                limit: shown.limit,
                remaining: shown.remaining,
                resetEpochSeconds: Math.floor(shown.resetEpochMs / 1_000),
              },
        dateMs: Math.floor(epoch / 1_000) * 1_000,
        retryAfterSeconds: Math.max(ofCategory.retryAfterSeconds, ofPlan?.retryAfterSeconds ?? 0),
      };
    },
  };
}
