import type { DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";

/** Rate limit categories of the spec (section 8.2) that this daemon calls. */
export const CATEGORIES = ["node_management", "session_monitoring"] as const;
export type Category = (typeof CATEGORIES)[number];

/** Purpose of a call. Actions have priority; all other calls share the permits by the weights of the plan. */
export type Lane = "action" | "walk" | "suspect" | "detail" | "stats";

/** Limit of one category: `requests` a window; `burst` is what a full bucket may hold (spec, section 8.2). */
export interface CategoryLimit {
  readonly requests: number;
  readonly burst: number;
  readonly windowMs: DurationMs;
}

/** Caps of the plan over all categories (spec, section 8.3); null: no cap. */
export interface PlanLimits {
  readonly requestsPerMinute: number | null;
  readonly concurrentRequests: number | null;
  readonly callsPerMonth: number | null;
}

/** The plans of the spec, section 8.3. Enterprise's requests a minute are "custom": a config states them. */
export const PLANS = {
  starter: { requestsPerMinute: 100, concurrentRequests: 10, callsPerMonth: 100_000 },
  business: { requestsPerMinute: 500, concurrentRequests: 50, callsPerMonth: 1_000_000 },
  enterprise: { requestsPerMinute: null, concurrentRequests: null, callsPerMonth: null },
} as const satisfies Record<string, PlanLimits>;

/** All limits on our calls. */
export interface Limits {
  readonly categories: Readonly<Record<Category, CategoryLimit>>;
  readonly plan: PlanLimits;
  /** Share of every window that polling leaves unused. */
  readonly reserve: Share;
}

/** Share of the month's calls reserved for actions: polling must never use up the month. */
export const MONTH_ACTION_SHARE: Share = 0.01;

/** Calls of the month that polling may make. */
export const pollingCallsPerMonth = (callsPerMonth: number): number =>
  Math.floor(callsPerMonth * (1 - MONTH_ACTION_SHARE));

/** Minimum reserve, whatever is configured: it covers the calls in flight of a killed process. */
const RESERVE_MIN: Share = 0.12;

/** Requests of a window that polling leaves unused, rounded up. */
export const reservedCalls = (requests: number, reserve: Share): number =>
  Math.ceil(requests * Math.max(RESERVE_MIN, reserve) - 1e-9);

/** Share of the reserve that actions may use. The rest is always left to other users of the key. */
const ACTION_RESERVE_SHARE: Share = 0.5;

/** Calls of a reserve of `kept` that actions may use, rounded down. */
export const actionReserveOf = (kept: number): number => Math.floor(kept * ACTION_RESERVE_SHARE);

/** How a limit is divided: calls for polling, unused reserve, and the part of the reserve that actions may use. */
export interface Allowance {
  readonly polling: number;
  readonly reserved: number;
  readonly actionReserve: number;
}

/**
 * Divides the `requests` of a window. `externalCalls`: calls expected from other users of the key. They use the reserve,
 * which grows if they need more; actions use none of what they need.
 */
export function allowanceOf(requests: number, reserve: Share, externalCalls: number): Allowance {
  const least = reservedCalls(requests, reserve);
  const kept = Math.min(requests, Math.max(least, externalCalls));
  return {
    polling: Math.max(1, requests - kept),
    reserved: kept,
    actionReserve: Math.max(0, Math.min(actionReserveOf(least), kept - externalCalls)),
  };
}

/** Share of a limit that is always left to other users of the key. */
const EXTERNAL_FLOOR_SHARE: Share = 0.02;

/** Calls of a limit that are always left to other users of the key. */
export const externalFloorOf = (limit: number): number => Math.ceil(limit * EXTERNAL_FLOOR_SHARE);
