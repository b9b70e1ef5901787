import type { DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";

/** Rate limit categories of the spec (section 8.2) that this daemon calls. */
export const CATEGORIES = ["node_management", "session_monitoring"] as const;
export type Category = (typeof CATEGORIES)[number];

/**
 * Purpose of a call. Actions have priority; all other calls share the permits by the weights of the plan. `lookup` is the
 * read of a node that a walk did not show.
 */
export type Lane = "action" | "walk" | "lookup" | "suspect" | "detail" | "stats";

/**
 * Limit of one category: `requests` per window. `burst` is the number of calls that a full bucket holds (spec, section
 * 8.2).
 */
interface CategoryLimit {
  readonly requests: number;
  readonly burst: number;
  readonly windowMs: DurationMs;
}

/** Caps of the plan over all categories (spec, section 8.3). Null means no cap. */
export interface PlanLimits {
  readonly requestsPerMinute: number | null;
  readonly concurrentRequests: number | null;
  readonly callsPerMonth: number | null;
}

/** The plans of the spec, section 8.3. Enterprise limits are "custom", so the configuration states them. */
export const PLANS = {
  starter: { requestsPerMinute: 100, concurrentRequests: 10, callsPerMonth: 100_000 },
  business: { requestsPerMinute: 500, concurrentRequests: 50, callsPerMonth: 1_000_000 },
  enterprise: { requestsPerMinute: null, concurrentRequests: null, callsPerMonth: null },
} as const satisfies Record<string, PlanLimits>;

/** All limits on API calls. */
export interface Limits {
  readonly categories: Readonly<Record<Category, CategoryLimit>>;
  readonly plan: PlanLimits;
  /** Share of every window that polling leaves unused: an {@link effectiveReserve}. */
  readonly reserve: Share;
}

/** Share of the month's calls that is reserved for actions. */
export const MONTH_ACTION_SHARE: Share = 0.01;

/** Returns the polling calls per month. */
export const pollingCallsPerMonth = (callsPerMonth: number): number =>
  Math.floor(callsPerMonth * (1 - MONTH_ACTION_SHARE));

/** Minimum reserve, even if less is configured. It covers the calls in flight of a killed process. */
const RESERVE_MIN: Share = 0.12;

/** Returns the reserve that applies if `configured` is configured. */
export const effectiveReserve = (configured: Share): Share => Math.max(RESERVE_MIN, configured);

/** Returns the calls per window that polling leaves unused, rounded up. */
export const reservedCalls = (requests: number, reserve: Share): number => Math.ceil(requests * reserve - 1e-9);

/** Share of the reserve that actions may use. The rest is always left to other users of the key. */
const ACTION_RESERVE_SHARE: Share = 0.5;

/** Returns the calls of a reserve that actions may use, rounded down. */
export const actionReserveOf = (reserved: number): number => Math.floor(reserved * ACTION_RESERVE_SHARE);

/**
 * Divides the `requests` of a window into polling calls and unused reserve. `externalCalls` are the calls expected from
 * other users of the key. The reserve is for them and grows if they need more. Actions use only what they leave, up to
 * `actionReserve`.
 */
export function allowanceOf(requests: number, reserve: Share, externalCalls: number) {
  const configured = reservedCalls(requests, reserve);
  const reserved = Math.min(requests, Math.max(configured, externalCalls));
  return {
    polling: Math.max(1, requests - reserved),
    reserved,
    actionReserve: Math.max(0, Math.min(actionReserveOf(configured), reserved - externalCalls)),
  };
}

/** Share of a limit that is always left to other users of the key. */
const EXTERNAL_FLOOR_SHARE: Share = 0.02;

/** Returns the calls of a limit that are always left to other users of the key. */
export const externalFloorOf = (limit: number): number => Math.ceil(limit * EXTERNAL_FLOOR_SHARE);

/**
 * Returns the polling calls per window of `category`. They are its requests, less the reserve, less the calls by other
 * users beyond the reserve, and at most `learned`, the limit learned from 429s (null if none).
 */
export function pollingCallsPerWindow(
  limits: Limits,
  category: Category,
  externalCalls = 0,
  learned: number | null = null,
): number {
  const { polling } = allowanceOf(limits.categories[category].requests, limits.reserve, externalCalls);
  return Math.min(polling, learned ?? Number.POSITIVE_INFINITY);
}

/** Returns the polling calls per minute over all categories, or null if the plan has no such limit. */
export function pollingCallsPerMinute(limits: Limits, externalCalls = 0): number | null {
  const requests = limits.plan.requestsPerMinute;
  return requests === null ? null : allowanceOf(requests, limits.reserve, externalCalls).polling;
}

/** Returns the maximum number of concurrent polling calls, or null if unlimited. */
export function pollingConcurrency(limits: Limits): number | null {
  const cap = limits.plan.concurrentRequests;
  return cap === null ? null : Math.max(1, cap - reservedCalls(cap, limits.reserve));
}
