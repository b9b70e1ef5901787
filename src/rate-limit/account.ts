import type { MonotonicMs } from "../model/time.ts";
import { createExternalUsage, type ExternalUsage } from "./external-usage/external-usage.ts";
import { createLearnedLimit, type LearnedLimit } from "./learned-limit.ts";
import { createStatedLimit, type SendMark, type StatedLimit } from "./limit-headers.ts";
import type { Category, Lane, Limits } from "./limits.ts";
import { categoryPaceRates, planPaceRates } from "./pace-rates.ts";
import { createPace, type Pace } from "./pacing.ts";
import { createRouteHistory, ROUTES, type Route, type RouteHistory } from "./route-rejections.ts";

/** Permission for one call. It must be returned with `settlePermit`, however the call ends. */
export interface Permit {
  readonly category: Category;
  readonly lane: Lane;
  readonly at: MonotonicMs;
  readonly mark: SendMark;
}

/** State of one category. */
export interface CategoryAccount {
  readonly headers: StatedLimit;
  readonly pace: Pace;
  /** Paces actions among themselves, in addition to `pace`. */
  readonly actions: Pace;
  /** Whether the last answer stated the limit. Where none did for a window, and the last didn't, the even pace alone rules. */
  wasStated: boolean;
  /** No call may go before: headers or an overloaded service said so. */
  rejectedUntil: MonotonicMs;
  /** Hold after a 429 of any category that does not say what it concerns: when the last one began, and when it ends. */
  readonly uncertainHold: { at: MonotonicMs; until: MonotonicMs };
  /** Recent calls by route. */
  readonly routes: Readonly<Record<Route, RouteHistory>>;
  /** When the last call that was answered or refused was sent. */
  lastTriedAt: MonotonicMs;
  /** Refusals in a row, those of calls that were under way together counted once. */
  rejections: number;
  /** When the last of them was counted. */
  rejectedAt: MonotonicMs;
  /** When the last call that was answered, and not refused, was sent. */
  answeredAt: MonotonicMs;
  readonly learned: LearnedLimit;
}

/** State of all limits. Owned by one rate limiter; every function on it is deterministic. */
export interface Ledger {
  limits: Limits;
  readonly startedAt: MonotonicMs;
  readonly accounts: Readonly<Record<Category, CategoryAccount>>;
  readonly plan: Pace;
  /** Paces actions among themselves, in addition to `plan`. */
  readonly planActions: Pace;
  /** No call of any category may go before: headers said so. */
  planRejectedUntil: MonotonicMs;
  /** Spaces the calls of all categories where a limit was learned: a gateway may count them together, and allow no burst. */
  readonly gatewayPace: Pace;
  inFlight: number;
  /** Calls in the plan's current month: ours and those learned of other users. The rate limiter persists them. */
  monthUsed: number;
  readonly externalUsage: ExternalUsage;
}

/** Creates a ledger without observations: each bucket starts empty, and one call per category goes out to learn its limit. */
export function createLedger(limits: Limits, monthUsed: number, now: MonotonicMs): Ledger {
  const account = (category: Category): CategoryAccount => ({
    headers: createStatedLimit(),
    pace: createPace(categoryPaceRates(limits, category).evenPace, now),
    actions: createPace(categoryPaceRates(limits, category).actionPace, now),
    wasStated: false,
    rejectedUntil: Number.NEGATIVE_INFINITY,
    uncertainHold: { at: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY },
    routes: Object.fromEntries(ROUTES.map((route) => [route, createRouteHistory()])) as Record<Route, RouteHistory>,
    lastTriedAt: Number.NEGATIVE_INFINITY,
    rejections: 0,
    rejectedAt: Number.NEGATIVE_INFINITY,
    answeredAt: Number.NEGATIVE_INFINITY,
    learned: createLearnedLimit(),
  });
  return {
    limits,
    startedAt: now,
    accounts: { node_management: account("node_management"), session_monitoring: account("session_monitoring") },
    plan: createPace(planPaceRates(limits).evenPace, now),
    planActions: createPace(planPaceRates(limits).actionPace, now),
    planRejectedUntil: Number.NEGATIVE_INFINITY,
    gatewayPace: { paidUntil: Number.NEGATIVE_INFINITY },
    inFlight: 0,
    monthUsed,
    externalUsage: createExternalUsage(),
  };
}
