import { byName } from "../base/by-name.ts";
import type { MonotonicMs } from "../model/time.ts";
import { createConcurrentCalls } from "./concurrent-calls.ts";
import { createExternalUsage } from "./external-usage/external-usage.ts";
import { createLearnedLimit } from "./learned-limit.ts";
import { CATEGORIES, type Category, type Lane, type Limits } from "./limits.ts";
import type { OwnCalls } from "./own-calls.ts";
import { createRouteHistory, ROUTES } from "./route-rejections.ts";
import { StatedLimit } from "./stated-limit.ts";
import { categoryPaceRates, createPace, planPaceRates } from "./window-pace.ts";

/** Permission for one call. It must be returned with `settlePermit`, regardless of how the call ends. */
export interface Permit {
  readonly category: Category;
  readonly lane: Lane;
  /** When it was taken. */
  readonly at: MonotonicMs;
  /** Calls of the category that were settled when this one was sent. */
  readonly settledBefore: number;
}

/** Creates the state of a category in which no call was made yet. */
const createCategoryState = (limits: Limits, category: Category, own: OwnCalls, now: MonotonicMs) => ({
  stated: new StatedLimit(own),
  pace: createPace(categoryPaceRates(limits, category), now),
  /** Whether the last response stated the limit. If it did not, and none has for a window, only the pace applies. */
  wasStated: false,
  /** No call may be sent before this time, because of a 429 that headers explain, or an overloaded service. */
  heldUntil: Number.NEGATIVE_INFINITY,
  /** Last hold after a 429 that no header explains, so that it may concern other calls. */
  uncertainHold: { at: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY },
  /** Recent calls by route. */
  routes: byName(ROUTES, createRouteHistory),
  /** When the last call that got a response was sent. */
  lastTriedAt: Number.NEGATIVE_INFINITY,
  /** 429s in a row; those of concurrent calls count once. */
  rejections: 0,
  /** When the last of them was counted. */
  rejectedAt: Number.NEGATIVE_INFINITY,
  /** When the last call that got a response other than 429 was sent. */
  answeredAt: Number.NEGATIVE_INFINITY,
  learned: createLearnedLimit(),
  /** When the permits for actions in the last day were taken. */
  actionTimes: [] as readonly MonotonicMs[],
});

/** State of one category. */
export type CategoryState = ReturnType<typeof createCategoryState>;

/**
 * Creates a ledger without observations. Nothing is saved for a burst, and each category starts with a single call,
 * whose response shows the limit.
 */
export function createLedger(limits: Limits, now: MonotonicMs) {
  const externalUsage = createExternalUsage();
  return {
    limits,
    startedAt: now,
    categories: byName(CATEGORIES, (category) =>
      createCategoryState(limits, category, externalUsage[category].own, now),
    ),
    planPace: createPace(planPaceRates(limits), now),
    /** No call of any category may be sent before this time, because of a 429 that headers explain. */
    planHeldUntil: Number.NEGATIVE_INFINITY,
    /**
     * Until when the calls of all categories are paid for together. While there is a learned limit, they are spaced
     * evenly, since a gateway may count them together and allow no burst.
     */
    gatewayPaidUntil: Number.NEGATIVE_INFINITY,
    ...createConcurrentCalls(limits, now),
    /** Calls in the plan's current month, ours and detected external ones. The rate limiter persists them. */
    monthUsed: 0,
    externalUsage,
  };
}

/** State of all limits. It is owned by one rate limiter, and every function on it is deterministic. */
export type Ledger = ReturnType<typeof createLedger>;
