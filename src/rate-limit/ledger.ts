import { byName } from "../base/by-name.ts";
import type { MonotonicMs } from "../model/time.ts";
import { type ConcurrentCalls, createConcurrentCalls } from "./concurrent-calls.ts";
import { createExternalUsage, type ExternalUsage } from "./external-usage/external-usage.ts";
import { createLearnedLimit, type LearnedLimit } from "./learned-limit.ts";
import { CATEGORIES, type Category, type Lane, type Limits } from "./limits.ts";
import { createRouteHistory, ROUTES, type Route, type RouteHistory } from "./route-rejections.ts";
import { StatedLimit } from "./stated-limit.ts";
import { categoryPaceRates, createPace, type Pace, planPaceRates } from "./window-pace.ts";

/** Permission for one call. It must be returned with `settlePermit`, regardless of how the call ends. */
export interface Permit {
  readonly category: Category;
  readonly lane: Lane;
  readonly at: MonotonicMs;
  /** Calls of the category that were settled when this one was sent. */
  readonly settledBefore: number;
}

/** State of one category. */
export interface CategoryState {
  readonly stated: StatedLimit;
  readonly pace: Pace;
  /** Whether the last response stated the limit. If it did not, and none has for a window, only the pace applies. */
  wasStated: boolean;
  /** No call may be sent before this time, because of headers or an overloaded service. */
  heldUntil: MonotonicMs;
  /** Last hold after a 429 that does not say which category it concerns. */
  readonly uncertainHold: { at: MonotonicMs; until: MonotonicMs };
  /** Recent calls by route. */
  readonly routes: Readonly<Record<Route, RouteHistory>>;
  /** When the last call that got a response was sent. */
  lastTriedAt: MonotonicMs;
  /** 429s in a row; those of concurrent calls count once. */
  rejections: number;
  /** When the last of them was counted. */
  rejectedAt: MonotonicMs;
  /** When the last call that got a response other than 429 was sent. */
  answeredAt: MonotonicMs;
  readonly learned: LearnedLimit;
  /** When the calls of actions in the last day were sent. */
  actionTimes: readonly MonotonicMs[];
}

/** State of all limits. It is owned by one rate limiter, and every function on it is deterministic. */
export interface Ledger extends ConcurrentCalls {
  limits: Limits;
  readonly startedAt: MonotonicMs;
  readonly categories: Readonly<Record<Category, CategoryState>>;
  readonly planPace: Pace;
  /** No call of any category may be sent before this time, because of headers. */
  planHeldUntil: MonotonicMs;
  /**
   * Until when the calls of all categories are paid for together. They are spaced while a limit is learned, since a
   * gateway may count them together and allow no burst.
   */
  gatewayPaidUntil: MonotonicMs;
  /** Calls in the plan's current month, ours and detected external ones. The rate limiter persists them. */
  monthUsed: number;
  readonly externalUsage: ExternalUsage;
}

/**
 * Creates a ledger without observations. Each bucket starts empty, and one call per category is sent to learn its
 * limit.
 */
export function createLedger(limits: Limits, now: MonotonicMs): Ledger {
  return {
    limits,
    startedAt: now,
    categories: byName(CATEGORIES, (category) => createCategoryState(limits, category, now)),
    planPace: createPace(planPaceRates(limits), now),
    planHeldUntil: Number.NEGATIVE_INFINITY,
    gatewayPaidUntil: Number.NEGATIVE_INFINITY,
    ...createConcurrentCalls(limits, now),
    monthUsed: 0,
    externalUsage: createExternalUsage(),
  };
}

const createCategoryState = (limits: Limits, category: Category, now: MonotonicMs): CategoryState => ({
  stated: new StatedLimit(),
  pace: createPace(categoryPaceRates(limits, category), now),
  wasStated: false,
  heldUntil: Number.NEGATIVE_INFINITY,
  uncertainHold: { at: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY },
  routes: byName(ROUTES, createRouteHistory),
  lastTriedAt: Number.NEGATIVE_INFINITY,
  rejections: 0,
  rejectedAt: Number.NEGATIVE_INFINITY,
  answeredAt: Number.NEGATIVE_INFINITY,
  learned: createLearnedLimit(),
  actionTimes: [],
});
