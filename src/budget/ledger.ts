import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { createLearned, type Learned, learnAnswered, learnedLimit, learnRefused, payLearned } from "./learned.ts";
import { allowanceOf, type Category, type Lane, type Limits, reserved } from "./limits.ts";
import {
  createOthers,
  type Others,
  othersAnswered,
  othersDoubtful,
  othersRefused,
  othersSent,
  othersUnsent,
  scopeOf,
} from "./others.ts";
import { type Pace, payPace, startPace } from "./pace.ts";
import { categoryTerms, planTerms } from "./terms.ts";
import {
  createView,
  type Mark,
  markAnswered,
  markLost,
  markSent,
  markUnsent,
  type Reading,
  ROUNDING_MS,
  type View,
} from "./view.ts";

/** Leave for one call. It goes back by {@link settle}, whatever became of the call. */
export interface Permit {
  readonly category: Category;
  readonly lane: Lane;
  readonly at: MonotonicMs;
  readonly mark: Mark;
}

/**
 * What became of a call. `answered`: by any status but 429; `retryAfterMs`: how long an overloaded service asks to be left
 * alone. `lost`: no answer, and the service may have counted it all the same; `unused`: nothing was sent, so that nobody
 * counted anything.
 */
export type CallOutcome =
  | { readonly kind: "answered"; readonly reading: Reading | null; readonly retryAfterMs?: DurationMs | null }
  | { readonly kind: "refused"; readonly reading: Reading | null; readonly retryAfterMs: DurationMs | null }
  | { readonly kind: "lost" }
  | { readonly kind: "unused" };

/** Account of one category. */
export interface Account {
  readonly view: View;
  readonly pace: Pace;
  /** What actions pay among themselves, beside `pace`. */
  readonly actions: Pace;
  /** Whether the last answer stated the limit. Where none did for a window, and the last didn't, the even pace alone rules. */
  stated: boolean;
  refusedUntil: MonotonicMs;
  /** Refusals in a row, those of calls that were under way together counted once. */
  refusals: number;
  /** When the last of them was counted. */
  refusedAt: MonotonicMs;
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
  planRefusedUntil: MonotonicMs;
  inFlight: number;
  /** Calls of the plan's current month, ours and what was learned of others', kept in the store by the office. */
  monthUsed: number;
  readonly others: Others;
}

/** A refusal waits for a random part of 1 s, then of twice as long each time, up to this; or for a longer Retry-After. */
const BACKOFF_MS_MAX: DurationMs = 5 * MINUTE_MS;
/** No Retry-After is believed beyond this: a spent month is waited for, a longer wait is a fault and no limit. */
const RETRY_AFTER_MS_MAX: DurationMs = 31 * DAY_MS;
/** The Retry-After of a 5xx holds its category no longer than this: what is overloaded may recover sooner than it says. */
export const OVERLOAD_MS_MAX: DurationMs = 15 * MINUTE_MS;

/** An account that knows nothing yet: each bucket begins empty, and one call a category goes out to learn. */
export function createLedger(limits: Limits, monthUsed: number, now: MonotonicMs): Ledger {
  const account = (category: Category): Account => ({
    view: createView(),
    pace: startPace(categoryTerms(limits, category).even, now),
    actions: startPace(categoryTerms(limits, category).actions, now),
    stated: false,
    refusedUntil: Number.NEGATIVE_INFINITY,
    refusals: 0,
    refusedAt: Number.NEGATIVE_INFINITY,
    learned: createLearned(),
  });
  return {
    limits,
    startedAt: now,
    accounts: { node_management: account("node_management"), session_monitoring: account("session_monitoring") },
    plan: startPace(planTerms(limits).even, now),
    planActions: startPace(planTerms(limits).actions, now),
    planRefusedUntil: Number.NEGATIVE_INFINITY,
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
  payLearned(account.learned, lane, ledger.limits.categories[category].windowMs, now);
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
  else settleRefused(ledger, permit, outcome, { isExplained, jitter }, now);
}

function settleAnswered(ledger: Ledger, permit: Permit, retryAfterMs: DurationMs | null, now: MonotonicMs): void {
  const account = ledger.accounts[permit.category];
  if (permit.at >= account.refusedAt) account.refusals = 0;
  learnAnswered(account.learned, learnedFrom(ledger, permit), now);
  if (retryAfterMs !== null) holdUntil(account, now + Math.min(OVERLOAD_MS_MAX, retryAfterMs + ROUNDING_MS));
}

function settleRefused(
  ledger: Ledger,
  permit: Permit,
  { reading, retryAfterMs }: Extract<CallOutcome, { kind: "refused" }>,
  { isExplained, jitter }: { isExplained: boolean; jitter: number },
  now: MonotonicMs,
): void {
  const account = ledger.accounts[permit.category];
  // Calls that were under way together are refused for one and the same reason: they double the wait once.
  if (permit.at >= account.refusedAt) {
    account.refusals++;
    account.refusedAt = now;
  }
  const backoff = Math.min(BACKOFF_MS_MAX, SECOND_MS * 2 ** Math.min(account.refusals - 1, 30)) * jitter;
  const asked = retryAfterMs === null ? 0 : Math.min(RETRY_AFTER_MS_MAX, retryAfterMs + ROUNDING_MS);
  holdUntil(account, now + Math.max(SECOND_MS, backoff, asked));
  // One action may go as soon as the wait is over, and no more at once: how much was freed by then nobody said.
  const { actions } = categoryTerms(ledger.limits, permit.category);
  const spent = account.refusedUntil + (actions.capacity - 1) * actions.costMs;
  account.actions.paidAt = Math.max(account.actions.paidAt, spent);
  if (!isOfCategory(ledger, permit.category, reading)) {
    ledger.planRefusedUntil = Math.max(ledger.planRefusedUntil, account.refusedUntil);
  }
  if (isExplained) return;
  const from = learnedFrom(ledger, permit);
  const made = ledger.others[permit.category].ownLately(from.windowMs, now);
  learnRefused(account.learned, { ...from, made }, now);
}

/** Nothing of the category goes before `until`, and afterwards not everything at once. */
function holdUntil(account: Account, until: MonotonicMs): void {
  account.refusedUntil = Math.max(account.refusedUntil, until);
  account.pace.paidAt = Math.max(account.pace.paidAt, account.refusedUntil);
}

/** Whether a refusal surely concerns its category alone. One that states nothing may concern the whole account. */
const isOfCategory = (ledger: Ledger, category: Category, reading: Reading | null): boolean =>
  reading !== null &&
  reading.limit === ledger.limits.categories[category].requests &&
  scopeOf(ledger.others, ledger.limits, category, reading.limit) === category;

/** Whether headers explain a refusal: nothing is left of a limit that is configured, or that answers stated before. */
function explainsRefusal({ limits, accounts }: Ledger, category: Category, reading: Reading | null): boolean {
  if (reading === null || reading.remaining > 0) return false;
  const { requestsPerMinute, concurrentRequests, callsPerMonth } = limits.plan;
  const known = [limits.categories[category].requests, requestsPerMinute, concurrentRequests, callsPerMonth];
  return [...known, accounts[category].view.stated?.limit].includes(reading.limit);
}

const learnedFrom = ({ limits }: Ledger, { category, at }: Permit) => ({
  sentAt: at,
  most: spendable(limits, category),
  windowMs: limits.categories[category].windowMs,
});

/** The limit that was learned from refusals in `category`, in calls a window; null: none was. */
export function learnedOf(ledger: Ledger, category: Category, now: MonotonicMs): number | null {
  const limit = learnedLimit(ledger.accounts[category].learned, ledger.limits.categories[category].windowMs, now);
  return limit === Number.POSITIVE_INFINITY ? null : limit;
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
