import { MINUTE_MS } from "../../base/duration.ts";
import type { ServiceOptions } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { createLimiter, type Limiter, type LimiterOptions, type Verdict } from "./limiter.ts";

/** Categories of endpoints with separate rate limits (spec, section 8.2). */
export type Category = "node_management" | "session_monitoring";

/** Rate limits by category (spec, section 8.2). */
const CATEGORY_LIMITS: Record<Category, LimiterOptions> = {
  node_management: { limit: 100, burst: 200, windowMs: MINUTE_MS },
  session_monitoring: { limit: 500, burst: 1_000, windowMs: MINUTE_MS },
};

/** Limits of a plan (spec, section 8.3). */
export interface PlanLimits {
  readonly requestsPerMinute: number;
  readonly concurrentRequests: number;
  readonly callsPerMonth: number;
}

const PLANS: Record<ServiceOptions["plan"], PlanLimits> = {
  starter: { requestsPerMinute: 100, concurrentRequests: 10, callsPerMonth: 100_000 },
  business: { requestsPerMinute: 500, concurrentRequests: 50, callsPerMonth: 1_000_000 },
  enterprise: {
    requestsPerMinute: Number.POSITIVE_INFINITY,
    concurrentRequests: Number.POSITIVE_INFINITY,
    callsPerMonth: Number.POSITIVE_INFINITY,
  },
};

/** Limits that replace those of the spec, such as the "custom" limits of Enterprise. */
export interface CustomLimits {
  readonly plan?: Partial<PlanLimits>;
  readonly categories?: Partial<Record<Category, LimiterOptions>>;
}

/**
 * The service's limits and their usage. Each key has separate category limits, and all keys share the plan limits. Each
 * instance of the service counts the requests that it receives.
 */
export interface ApiLimits {
  readonly options: ServiceOptions;
  readonly plan: PlanLimits;
  /** Requests a minute over all categories, by instance, or null if unlimited. */
  readonly planMinutes: readonly (Limiter | null)[];
  readonly categorySizes: Readonly<Record<Category, LimiterOptions>>;
  /** By key and instance. */
  readonly categories: Map<string, Record<Category, Limiter>>;
  /** Start of the current month (UTC). */
  monthStart: EpochMs;
  monthCalls: number;
}

/** The decision on a request by all limits. */
export interface LimitDecision {
  /**
   * The exceeded limit, which is a rate limit (429, section 7.1) or a cap of the plan, or null if the request is
   * admitted.
   */
  readonly refusedBy: "rate" | "concurrency" | "month" | null;
  /** Values for the rate limit headers, which are those of the exceeded limit, if any. */
  readonly verdict: Verdict;
}

/** Creates the limits of a service. The plan's requests per minute have the same kind of limiter, without a burst. */
export function createApiLimits(options: ServiceOptions, customLimits: CustomLimits = {}): ApiLimits {
  const plan = { ...PLANS[options.plan], ...customLimits.plan };
  const sizes = { ...CATEGORY_LIMITS, ...customLimits.categories };
  const limit = plan.requestsPerMinute;
  const createPlanMinute = () =>
    Number.isFinite(limit) ? limiter(options, { limit, burst: limit, windowMs: MINUTE_MS }) : null;
  return {
    options,
    plan,
    planMinutes: Array.from({ length: options.instances }, createPlanMinute),
    categorySizes: sizes,
    categories: new Map(),
    monthStart: Number.NaN,
    monthCalls: 0,
  };
}

/**
 * Decides whether a request is admitted, and counts it if so. `account` is the key; requests without a valid key (null)
 * share category limits and do not count towards the plan. `inFlight` includes this request. `instance` is the instance
 * of the service that receives it, from 0.
 */
export function checkLimits(
  apiLimits: ApiLimits,
  account: string | null,
  category: Category,
  inFlight: number,
  at: EpochMs,
  instance = 0,
): LimitDecision {
  const limiterOfCategory = categoryLimiters(apiLimits, `${account ?? ""} ${instance}`)[category];
  const minute = account === null ? null : apiLimits.planMinutes[instance]!;
  const cap = account === null ? null : exceededPlanCap(apiLimits, inFlight, at);
  if (cap !== null) return { refusedBy: cap.refusedBy, verdict: cap.verdict };
  for (const candidate of [minute, limiterOfCategory]) {
    const verdict = candidate?.peek(at);
    if (verdict?.admitted === false) return { refusedBy: "rate", verdict };
  }
  if (account !== null) apiLimits.monthCalls += 1;
  const ofCategory = limiterOfCategory.take(at);
  const ofPlan = minute?.take(at);
  return {
    refusedBy: null,
    verdict: apiLimits.options.rateLimitHeaders === "plan" ? (ofPlan ?? ofCategory) : ofCategory,
  };
}

function exceededPlanCap(apiLimits: ApiLimits, inFlight: number, at: EpochMs): LimitDecision | null {
  const { plan } = apiLimits;
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const monthStart = Date.UTC(year, month);
  if (monthStart !== apiLimits.monthStart) {
    apiLimits.monthStart = monthStart;
    apiLimits.monthCalls = 0;
  }
  if (inFlight > plan.concurrentRequests) {
    return { refusedBy: "concurrency", verdict: exhaustedVerdict(plan.concurrentRequests, at + 1_000, at) };
  }
  if (apiLimits.monthCalls >= plan.callsPerMonth) {
    return { refusedBy: "month", verdict: exhaustedVerdict(plan.callsPerMonth, Date.UTC(year, month + 1), at) };
  }
  return null;
}

const exhaustedVerdict = (limit: number, resetEpochMs: EpochMs, at: EpochMs): Verdict => ({
  admitted: false,
  limit,
  remaining: 0,
  resetEpochMs,
  retryAfterSeconds: Math.max(1, Math.ceil((resetEpochMs - at) / 1_000)),
});

function categoryLimiters(apiLimits: ApiLimits, accountAndInstance: string): Record<Category, Limiter> {
  const known = apiLimits.categories.get(accountAndInstance);
  if (known !== undefined) return known;
  const limiters = {
    node_management: limiter(apiLimits.options, apiLimits.categorySizes.node_management),
    session_monitoring: limiter(apiLimits.options, apiLimits.categorySizes.session_monitoring),
  };
  apiLimits.categories.set(accountAndInstance, limiters);
  return limiters;
}

const limiter = (options: ServiceOptions, size: LimiterOptions): Limiter =>
  createLimiter(options.limiter, { ...size, reset: options.tokenBucketReset });
