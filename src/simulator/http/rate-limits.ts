import { MINUTE_MS } from "../../base/duration.ts";
import type { ServiceOptions } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { createLimiter, type Limiter, type LimiterOptions, type Verdict } from "./limiter.ts";

/** The endpoint categories that have endpoints (spec, section 8.2). */
export type Category = "node_management" | "session_monitoring";

/** The spec's limits by category (section 8.2). */
const CATEGORY_LIMITS: Record<Category, LimiterOptions> = {
  node_management: { limit: 100, burst: 200, windowMs: MINUTE_MS },
  session_monitoring: { limit: 500, burst: 1_000, windowMs: MINUTE_MS },
};

/** What a plan allows (spec, section 8.3). */
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

/** What a contract states instead of the spec's tables: the spec calls what Enterprise allows "custom". */
export interface CustomLimits {
  readonly plan?: Partial<PlanLimits>;
  readonly categories?: Partial<Record<Category, LimiterOptions>>;
}

/** The service's limits and their usage. Each key has its own categories; the plan is one. */
export interface ApiLimits {
  readonly options: ServiceOptions;
  readonly plan: PlanLimits;
  /** Requests a minute over all categories; null: unlimited. */
  readonly planMinute: Limiter | null;
  readonly categorySizes: Readonly<Record<Category, LimiterOptions>>;
  readonly categories: Map<string, Record<Category, Limiter>>;
  /** First instant of the running month (UTC), and calls in it. */
  monthStart: EpochMs;
  monthCalls: number;
}

/** Let in, or not: by a limit on requests (429 of section 7.1) or by a cap of the plan. */
export interface LimitDecision {
  readonly refusedBy: "rate" | "concurrency" | "month" | null;
  /** What the rate limit headers state; of a refusal, the numbers of the limit that refused. */
  readonly verdict: Verdict;
}

/** The plan's minute is counted by the same kind of limiter as the categories; the spec names no burst for it. */
export function createApiLimits(options: ServiceOptions, contract: CustomLimits = {}): ApiLimits {
  const plan = { ...PLANS[options.plan], ...contract.plan };
  const sizes = { ...CATEGORY_LIMITS, ...contract.categories };
  const limit = plan.requestsPerMinute;
  const minute = Number.isFinite(limit) ? limiter(options, { limit, burst: limit, windowMs: MINUTE_MS }) : null;
  return {
    options,
    plan,
    planMinute: minute,
    categorySizes: sizes,
    categories: new Map(),
    monthStart: Number.NaN,
    monthCalls: 0,
  };
}

/**
 * Asks whether a request may come in, and counts it if so. `account` is the key; requests without a valid one share an
 * account, and use nothing of the plan. `inFlight` counts this request, too.
 */
export function checkLimits(
  apiLimits: ApiLimits,
  account: string | null,
  category: Category,
  inFlight: number,
  at: EpochMs,
): LimitDecision {
  const limiterOfCategory = categoryLimiters(apiLimits, account ?? "")[category];
  const minute = account === null ? null : apiLimits.planMinute;
  const cap = account === null ? null : exceededPlanCap(apiLimits, inFlight, at);
  if (cap !== null) return { refusedBy: cap.refusedBy, verdict: cap.verdict };
  for (const one of [minute, limiterOfCategory]) {
    const verdict = one?.peek(at);
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

function categoryLimiters(apiLimits: ApiLimits, account: string): Record<Category, Limiter> {
  const known = apiLimits.categories.get(account);
  if (known !== undefined) return known;
  const fresh = {
    node_management: limiter(apiLimits.options, apiLimits.categorySizes.node_management),
    session_monitoring: limiter(apiLimits.options, apiLimits.categorySizes.session_monitoring),
  };
  apiLimits.categories.set(account, fresh);
  return fresh;
}

const limiter = (options: ServiceOptions, size: LimiterOptions): Limiter =>
  createLimiter(options.limiter, { ...size, reset: options.tokenBucketReset });
