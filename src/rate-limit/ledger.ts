import type { DurationMs } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { payFront } from "./gateway-limit.ts";
import { createLearned, type Learned } from "./learned-limit.ts";
import { allowanceOf, type Category, type Lane, type Limits, reserved } from "./limits.ts";
import {
  createOthers,
  type Others,
  othersAnswered,
  othersDoubtful,
  othersRefused,
  othersSent,
  othersUnsent,
} from "./external-usage/external-usage.ts";
import { type Pace, payPace, startPace } from "./pacing.ts";
import { explainsRefusal, settleAnswered, settleRefused } from "./too-many-requests.ts";
import { createRouteRecord, type Route, type RouteRecord } from "./route-rejections.ts";
import { categoryTerms, planTerms } from "./pace-rates.ts";
import {
  createView,
  type Mark,
  markAnswered,
  markLost,
  markSent,
  markUnsent,
  type Reading,
  type View,
} from "./limit-headers.ts";

/** Leave for one call. It goes back by {@link settle}, whatever became of the call. */
export interface Permit {
  readonly category: Category;
  readonly lane: Lane;
  readonly at: MonotonicMs;
  readonly mark: Mark;
}

/**
 * What became of a call. `answered`: by any status but 429; `retryAfterMs`: how long an overloaded service asks to be left
 * alone. `lost`: no answer, and the service may have counted it all the same; `unused`: nothing was sent, so that the
 * service counted nothing.
 */
export type CallOutcome =
  | { readonly kind: "answered"; readonly reading: Reading | null; readonly retryAfterMs?: DurationMs | null }
  | { readonly kind: "refused"; readonly reading: Reading | null; readonly retryAfterMs: DurationMs | null }
  | { readonly kind: "lost" }
  | { readonly kind: "unused" };

/** A hold for a refusal that may concern more than the route that was refused. */
export interface DoubtfulHold {
  /** When the last one began. */
  at: MonotonicMs;
  /** When the last one ends. */
  until: MonotonicMs;
}

/** Account of one category. */
export interface Account {
  readonly view: View;
  readonly pace: Pace;
  /** What actions pay among themselves, beside `pace`. */
  readonly actions: Pace;
  /** Whether the last answer stated the limit. Where none did for a window, and the last didn't, the even pace alone rules. */
  stated: boolean;
  /** No call may go before: headers or an overloaded service said so. */
  refusedUntil: MonotonicMs;
  /** Holds the category after a refusal, of whatever category, that doesn't say what it concerns. */
  readonly doubt: DoubtfulHold;
  /** Recent calls by route. */
  readonly routes: Readonly<Record<Route, RouteRecord>>;
  /** When the last call that was answered or refused was sent. */
  triedAt: MonotonicMs;
  /** Refusals in a row, those of calls that were under way together counted once. */
  refusals: number;
  /** When the last of them was counted. */
  refusedAt: MonotonicMs;
  /** When the last call that was answered, and not refused, was sent. */
  answeredAt: MonotonicMs;
  readonly learned: Learned;
}

/** The account of the whole budget. Owned by one permit office; every function here is deterministic. */
export interface Ledger {
  limits: Limits;
  readonly startedAt: MonotonicMs;
  readonly accounts: Readonly<Record<Category, Account>>;
  readonly plan: Pace;
  /** What actions pay among themselves, beside `plan`. */
  readonly planActions: Pace;
  /** No call of any category may go before: headers said so. */
  planRefusedUntil: MonotonicMs;
  /** Spaces the calls of all categories where a limit was learned: a gateway may count them together, and allow no burst. */
  readonly front: Pace;
  inFlight: number;
  /** Calls of the plan's current month, ours and what was learned of others', kept in the store by the office. */
  monthUsed: number;
  readonly others: Others;
}

/** An account that knows nothing yet: each bucket begins empty, and one call a category goes out to learn. */
export function createLedger(limits: Limits, monthUsed: number, now: MonotonicMs): Ledger {
  const account = (category: Category): Account => ({
    view: createView(),
    pace: startPace(categoryTerms(limits, category).even, now),
    actions: startPace(categoryTerms(limits, category).actions, now),
    stated: false,
    refusedUntil: Number.NEGATIVE_INFINITY,
    doubt: { at: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY },
    routes: {
      action: createRouteRecord(),
      walk: createRouteRecord(),
      detail: createRouteRecord(),
      stats: createRouteRecord(),
    },
    triedAt: Number.NEGATIVE_INFINITY,
    refusals: 0,
    refusedAt: Number.NEGATIVE_INFINITY,
    answeredAt: Number.NEGATIVE_INFINITY,
    learned: createLearned(),
  });
  return {
    limits,
    startedAt: now,
    accounts: { node_management: account("node_management"), session_monitoring: account("session_monitoring") },
    plan: startPace(planTerms(limits).even, now),
    planActions: startPace(planTerms(limits).actions, now),
    planRefusedUntil: Number.NEGATIVE_INFINITY,
    front: { paidAt: Number.NEGATIVE_INFINITY },
    inFlight: 0,
    monthUsed,
    others: createOthers(),
  };
}

/** Takes a permit. Call it only where `opening` said `at <= now`. */
export function take(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Permit {
  const account = ledger.accounts[category];
  const terms = categoryTerms(ledger.limits, category);
  const plan = planTerms(ledger.limits);
  payPace(account.pace, terms.even, now);
  payPace(ledger.plan, plan.even, now);
  if (lane === "action") {
    payPace(account.actions, terms.actions, now);
    payPace(ledger.planActions, plan.actions, now);
  }
  payFront(ledger, category, lane, now);
  othersSent(ledger.others, category, now);
  ledger.inFlight++;
  ledger.monthUsed++;
  return { category, lane, at: now, mark: markSent(account.view) };
}

/** Gives a permit back. `jitter` in [0, 1) spreads the back-off of a refusal that names no wait. */
export function settle(ledger: Ledger, permit: Permit, outcome: CallOutcome, jitter: number, now: MonotonicMs): void {
  const account = ledger.accounts[permit.category];
  ledger.inFlight--;
  if (outcome.kind === "unused") {
    // What it paid stays paid: a pace that was paid for others since has no way back that can't be too early.
    ledger.monthUsed--;
    markUnsent(account.view);
    othersUnsent(ledger.others, permit.category, permit.at);
    return;
  }
  if (outcome.kind === "lost") {
    const countedBy = now + ledger.limits.categories[permit.category].windowMs;
    markLost(account.view, countedBy);
    othersDoubtful(ledger.others, ledger.limits, permit.category, countedBy, now);
    return;
  }
  const learn = outcome.kind === "refused" ? othersRefused : othersAnswered;
  const isExplained = explainsRefusal(ledger, permit.category, outcome.reading);
  learn(ledger.others, ledger.limits, permit, outcome.reading, now);
  markAnswered(account.view, permit.mark, outcome.reading, now);
  account.stated = outcome.reading !== null;
  if (outcome.kind === "answered") settleAnswered(ledger, permit, outcome.retryAfterMs ?? null, now);
  else settleRefused(ledger, permit, { ...outcome, isExplained, jitter }, now);
}

/**
 * What polling may spend in a window of `category`: its requests less the reserve, and what others need beyond it, but no
 * more than `learned`, the limit that was learned from refusals; null: none was.
 */
export const spendable = (limits: Limits, category: Category, others = 0, learned: number | null = null): number =>
  Math.min(
    allowanceOf(limits.categories[category].requests, limits.reserve, others).polling,
    learned ?? Number.POSITIVE_INFINITY,
  );

/** What polling may spend a minute over all categories; null: the plan has no such cap. */
export function spendableOfPlan(limits: Limits, others = 0): number | null {
  const requests = limits.plan.requestsPerMinute;
  return requests === null ? null : allowanceOf(requests, limits.reserve, others).polling;
}

/** Polling calls that may be under way at once; null: any number. */
export function concurrency(limits: Limits): number | null {
  const cap = limits.plan.concurrentRequests;
  return cap === null ? null : Math.max(1, cap - reserved(cap, limits.reserve));
}

/** Headers that state more than the category's own limit speak of something wider: they bind, but they don't lead. */
export const speaksOfMore = (ledger: Ledger, category: Category, reading: Reading | null): boolean =>
  reading !== null && reading.limit > ledger.limits.categories[category].requests;
