import type { DurationMs } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import {
  createExternalUsage,
  type ExternalUsage,
  recordCallAnswered,
  recordCallInDoubt,
  recordCallRejected,
  recordCallSent,
  recordCallUnsent,
} from "./external-usage/external-usage.ts";
import { payGatewayLimit } from "./gateway-limit.ts";
import { createLearnedLimit, type LearnedLimit } from "./learned-limit.ts";
import {
  createStatedLimit,
  type LimitReading,
  recordAnswered,
  recordLost,
  recordSent,
  recordUnsent,
  type SendMark,
  type StatedLimit,
} from "./limit-headers.ts";
import { allowanceOf, type Category, type Lane, type Limits, reservedCalls } from "./limits.ts";
import { categoryPaceRates, planPaceRates } from "./pace-rates.ts";
import { createPace, type Pace, payForCall } from "./pacing.ts";
import { createRouteHistory, type Route, type RouteHistory } from "./route-rejections.ts";
import { headersExplainRejection, recordAnswer, recordTooManyRequests } from "./too-many-requests.ts";

/** Leave for one call. It goes back by {@link settle}, whatever became of the call. */
export interface Permit {
  readonly category: Category;
  readonly lane: Lane;
  readonly at: MonotonicMs;
  readonly mark: SendMark;
}

/**
 * What became of a call. `answered`: by any status but 429; `retryAfterMs`: how long an overloaded service asks to be left
 * alone. `lost`: no answer, and the service may have counted it all the same; `unused`: nothing was sent, so that the
 * service counted nothing.
 */
export type CallOutcome =
  | { readonly kind: "answered"; readonly reading: LimitReading | null; readonly retryAfterMs?: DurationMs | null }
  | { readonly kind: "refused"; readonly reading: LimitReading | null; readonly retryAfterMs: DurationMs | null }
  | { readonly kind: "lost" }
  | { readonly kind: "unused" };

/** A hold for a refusal that may concern more than the route that was refused. */
export interface UncertainHold {
  /** When the last one began. */
  at: MonotonicMs;
  /** When the last one ends. */
  until: MonotonicMs;
}

/** Account of one category. */
export interface CategoryAccount {
  readonly headers: StatedLimit;
  readonly pace: Pace;
  /** What actions pay among themselves, beside `pace`. */
  readonly actions: Pace;
  /** Whether the last answer stated the limit. Where none did for a window, and the last didn't, the even pace alone rules. */
  wasStated: boolean;
  /** No call may go before: headers or an overloaded service said so. */
  rejectedUntil: MonotonicMs;
  /** Holds the category after a refusal, of whatever category, that doesn't say what it concerns. */
  readonly uncertainHold: UncertainHold;
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

/** The account of the whole budget. Owned by one permit office; every function here is deterministic. */
export interface Ledger {
  limits: Limits;
  readonly startedAt: MonotonicMs;
  readonly accounts: Readonly<Record<Category, CategoryAccount>>;
  readonly plan: Pace;
  /** What actions pay among themselves, beside `plan`. */
  readonly planActions: Pace;
  /** No call of any category may go before: headers said so. */
  planRejectedUntil: MonotonicMs;
  /** Spaces the calls of all categories where a limit was learned: a gateway may count them together, and allow no burst. */
  readonly gatewayPace: Pace;
  inFlight: number;
  /** Calls of the plan's current month, ours and what was learned of others', kept in the store by the office. */
  monthUsed: number;
  readonly externalUsage: ExternalUsage;
}

/** An account that knows nothing yet: each bucket begins empty, and one call a category goes out to learn. */
export function createLedger(limits: Limits, monthUsed: number, now: MonotonicMs): Ledger {
  const account = (category: Category): CategoryAccount => ({
    headers: createStatedLimit(),
    pace: createPace(categoryPaceRates(limits, category).evenPace, now),
    actions: createPace(categoryPaceRates(limits, category).actionPace, now),
    wasStated: false,
    rejectedUntil: Number.NEGATIVE_INFINITY,
    uncertainHold: { at: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY },
    routes: {
      action: createRouteHistory(),
      walk: createRouteHistory(),
      detail: createRouteHistory(),
      stats: createRouteHistory(),
    },
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

/** Takes a permit. Call it only where `opening` said `at <= now`. */
export function takePermit(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Permit {
  const account = ledger.accounts[category];
  const terms = categoryPaceRates(ledger.limits, category);
  const plan = planPaceRates(ledger.limits);
  payForCall(account.pace, terms.evenPace, now);
  payForCall(ledger.plan, plan.evenPace, now);
  if (lane === "action") {
    payForCall(account.actions, terms.actionPace, now);
    payForCall(ledger.planActions, plan.actionPace, now);
  }
  payGatewayLimit(ledger, category, lane, now);
  recordCallSent(ledger.externalUsage, category, now);
  ledger.inFlight++;
  ledger.monthUsed++;
  return { category, lane, at: now, mark: recordSent(account.headers) };
}

/** Gives a permit back. `jitter` in [0, 1) spreads the back-off of a refusal that names no wait. */
export function settlePermit(
  ledger: Ledger,
  permit: Permit,
  outcome: CallOutcome,
  jitter: number,
  now: MonotonicMs,
): void {
  const account = ledger.accounts[permit.category];
  ledger.inFlight--;
  if (outcome.kind === "unused") {
    // What it paid stays paid: a pace that was paid for others since has no way back that can't be too early.
    ledger.monthUsed--;
    recordUnsent(account.headers);
    recordCallUnsent(ledger.externalUsage, permit.category, permit.at);
    return;
  }
  if (outcome.kind === "lost") {
    const countedBy = now + ledger.limits.categories[permit.category].windowMs;
    recordLost(account.headers, countedBy);
    recordCallInDoubt(ledger.externalUsage, ledger.limits, permit.category, countedBy, now);
    return;
  }
  const learn = outcome.kind === "refused" ? recordCallRejected : recordCallAnswered;
  const isExplained = headersExplainRejection(ledger, permit.category, outcome.reading);
  learn(ledger.externalUsage, ledger.limits, permit, outcome.reading, now);
  recordAnswered(account.headers, permit.mark, outcome.reading, now);
  account.wasStated = outcome.reading !== null;
  if (outcome.kind === "answered") recordAnswer(ledger, permit, outcome.retryAfterMs ?? null, now);
  else recordTooManyRequests(ledger, permit, { ...outcome, isExplained, jitter }, now);
}

/**
 * What polling may spend in a window of `category`: its requests less the reserve, and what others need beyond it, but no
 * more than `learned`, the limit that was learned from refusals; null: none was.
 */
export const pollingCallsPerWindow = (
  limits: Limits,
  category: Category,
  externalUsage = 0,
  learned: number | null = null,
): number =>
  Math.min(
    allowanceOf(limits.categories[category].requests, limits.reserve, externalUsage).polling,
    learned ?? Number.POSITIVE_INFINITY,
  );

/** What polling may spend a minute over all categories; null: the plan has no such cap. */
export function pollingCallsPerMinute(limits: Limits, externalUsage = 0): number | null {
  const requests = limits.plan.requestsPerMinute;
  return requests === null ? null : allowanceOf(requests, limits.reserve, externalUsage).polling;
}

/** Polling calls that may be under way at once; null: any number. */
export function pollingConcurrency(limits: Limits): number | null {
  const cap = limits.plan.concurrentRequests;
  return cap === null ? null : Math.max(1, cap - reservedCalls(cap, limits.reserve));
}

/** Headers that state more than the category's own limit speak of something wider: they bind, but they don't lead. */
export const statesWiderLimit = (ledger: Ledger, category: Category, reading: LimitReading | null): boolean =>
  reading !== null && reading.limit > ledger.limits.categories[category].requests;
