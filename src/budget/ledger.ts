import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { type Category, dipOf, type Lane, type Limits, pollingMonth, reserved } from "./limits.ts";
import { actionRate, evenRate, type Pace, type PaceRate, paceOpensAt, payPace, startPace } from "./pace.ts";
import {
  createView,
  leastRemaining,
  type Mark,
  markAnswered,
  markLost,
  markSent,
  markUnsent,
  type Reading,
  settleLost,
  underWay,
  type View,
} from "./view.ts";

/** What holds a call back: the values of `reason` wherever a wait is explained. */
export type Hold = "refused" | "learning" | "remaining" | "pace" | "plan" | "concurrency" | "month";

/** When a call may go (Infinity: not before something else happens first), and what holds it until then. */
export interface Opening {
  readonly at: MonotonicMs;
  readonly hold: Hold | null;
}

/** Leave for one call. It goes back by {@link settle}, whatever became of the call. */
export interface Permit {
  readonly category: Category;
  readonly lane: Lane;
  readonly at: MonotonicMs;
  readonly mark: Mark;
}

/**
 * What became of a call. `lost`: no answer, and the service may have counted it all the same; `unused`: nothing was
 * sent, so that nobody counted anything.
 */
export type CallOutcome =
  | { readonly kind: "answered"; readonly reading: Reading | null }
  | { readonly kind: "refused"; readonly reading: Reading | null; readonly retryAfterMs: DurationMs | null }
  | { readonly kind: "lost" }
  | { readonly kind: "unused" };

/** Account of one category. */
export interface Account {
  readonly view: View;
  readonly pace: Pace;
  /** What actions pay among themselves, beside `pace`. */
  readonly actions: Pace;
  /** Whether the last answer stated the limit. Where it didn't, the even pace alone rules. */
  stated: boolean;
  refusedUntil: MonotonicMs;
  refusals: number;
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
  /** Calls of the plan's current month, kept in the store by the office. */
  monthUsed: number;
}

/** A refusal without Retry-After waits 1 s, then twice as long each time, up to this. */
const BACKOFF_MS_MAX: DurationMs = 5 * MINUTE_MS;
/** No Retry-After is believed beyond this: a spent month is waited for, a longer wait is a fault and no limit. */
const RETRY_AFTER_MS_MAX: DurationMs = 31 * DAY_MS;
/** Added to whatever the service says of time, for its clock shows whole seconds. */
const ROUNDING_MS: DurationMs = SECOND_MS;

/** An account that knows nothing yet: each bucket begins empty, and one call a category goes out to learn. */
export function createLedger(limits: Limits, monthUsed: number, now: MonotonicMs): Ledger {
  const account = (category: Category): Account => ({
    view: createView(),
    pace: startPace(categoryRate(limits, category), now),
    actions: startPace(categoryActionRate(limits, category), now),
    stated: false,
    refusedUntil: Number.NEGATIVE_INFINITY,
    refusals: 0,
  });
  return {
    limits,
    startedAt: now,
    accounts: { node_management: account("node_management"), session_monitoring: account("session_monitoring") },
    plan: startPace(planRate(limits) ?? { costMs: 0, capacity: 1 }, now),
    planActions: startPace(planActionRate(limits) ?? { costMs: 0, capacity: 1 }, now),
    planRefusedUntil: Number.NEGATIVE_INFINITY,
    inFlight: 0,
    monthUsed,
  };
}

/** When a call of `lane` in `category` may go, and what holds it. All constraints are looked at; the last to open rules. */
export function opening(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Opening {
  settleLost(ledger.accounts[category].view, now);
  const constraints: Opening[] = [
    { at: Math.max(ledger.accounts[category].refusedUntil, ledger.planRefusedUntil), hold: "refused" },
    viewOpening(ledger, category, lane, now),
    paceOpening(ledger, category, lane, now),
    planOpening(ledger, lane, now),
    { at: hasRoom(ledger, lane) ? now : Number.POSITIVE_INFINITY, hold: "concurrency" },
    { at: hasMonth(ledger, lane) ? now : Number.POSITIVE_INFINITY, hold: "month" },
  ];
  const last = constraints.reduce((latest, each) => (each.at > latest.at ? each : latest));
  return last.at <= now ? { at: now, hold: null } : last;
}

/** Takes a permit. Call it only where {@link opening} said `at <= now`. */
export function take(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Permit {
  const account = ledger.accounts[category];
  payPace(account.pace, categoryRate(ledger.limits, category), now);
  const plan = planRate(ledger.limits);
  if (plan !== null) payPace(ledger.plan, plan, now);
  if (lane === "action") {
    payPace(account.actions, categoryActionRate(ledger.limits, category), now);
    const planActions = planActionRate(ledger.limits);
    if (planActions !== null) payPace(ledger.planActions, planActions, now);
  }
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
    return;
  }
  if (outcome.kind === "lost") {
    markLost(account.view, now + ledger.limits.categories[permit.category].windowMs);
    return;
  }
  markAnswered(account.view, permit.mark, outcome.reading, now);
  account.stated = outcome.reading !== null;
  if (outcome.kind === "answered") {
    account.refusals = 0;
    return;
  }
  account.refusals++;
  const backoff = Math.min(BACKOFF_MS_MAX, SECOND_MS * 2 ** Math.min(account.refusals - 1, 30));
  const wait =
    outcome.retryAfterMs === null
      ? Math.max(SECOND_MS, backoff * jitter)
      : Math.min(RETRY_AFTER_MS_MAX, outcome.retryAfterMs + ROUNDING_MS);
  account.refusedUntil = Math.max(account.refusedUntil, now + wait);
  account.pace.paidAt = Math.max(account.pace.paidAt, account.refusedUntil);
  // One action may go as soon as the wait is over, and no more at once: how much was freed by then nobody said.
  const actions = categoryActionRate(ledger.limits, permit.category);
  const spent = account.refusedUntil + (actions.capacity - 1) * actions.costMs;
  account.actions.paidAt = Math.max(account.actions.paidAt, spent);
  if (speaksOfMore(ledger, permit.category, outcome.reading)) ledger.planRefusedUntil = account.refusedUntil;
}

/**
 * Turns the headers of an answer (spec, section 8.1) into a reading. The reset is on the service's clock, so it is
 * counted from the answer's own Date; both are cut to seconds, hence the rounding.
 */
export function reading(
  stated: { limit: number; remaining: number; resetEpochSeconds: number | null; dateEpochMs: number | null },
  now: MonotonicMs,
): Reading {
  const { limit, remaining, resetEpochSeconds, dateEpochMs } = stated;
  const untilReset =
    resetEpochSeconds === null || dateEpochMs === null
      ? Number.NaN
      : resetEpochSeconds * SECOND_MS - dateEpochMs + ROUNDING_MS;
  return { limit, remaining, resetAt: untilReset >= 0 ? now + untilReset : null };
}

/** What polling may spend in a window of `category`, a window's worth of requests less the reserve. */
export const spendable = (limits: Limits, category: Category): number => {
  const { requests } = limits.categories[category];
  return Math.max(1, requests - reserved(requests, limits.reserve));
};

/** What polling may spend a minute over all categories; null: the plan has no such cap. */
export function spendableOfPlan(limits: Limits): number | null {
  const requests = limits.plan.requestsPerMinute;
  return requests === null ? null : Math.max(1, requests - reserved(requests, limits.reserve));
}

/** Polling calls that may be under way at once; null: any number. */
export function concurrency(limits: Limits): number | null {
  const cap = limits.plan.concurrentRequests;
  return cap === null ? null : Math.max(1, cap - reserved(cap, limits.reserve));
}

const categoryRate = (limits: Limits, category: Category): PaceRate =>
  evenRate(spendable(limits, category), limits.categories[category].windowMs);

function planRate(limits: Limits): PaceRate | null {
  const calls = spendableOfPlan(limits);
  return calls === null ? null : evenRate(calls, MINUTE_MS);
}

const categoryActionRate = (limits: Limits, category: Category): PaceRate =>
  actionRate(spendable(limits, category), categoryDip(limits, category), limits.categories[category].windowMs);

function planActionRate(limits: Limits): PaceRate | null {
  const calls = spendableOfPlan(limits);
  return calls === null ? null : actionRate(calls, planDip(limits), MINUTE_MS);
}

const categoryDip = (limits: Limits, category: Category): number =>
  dipOf(reserved(limits.categories[category].requests, limits.reserve));

const planDip = (limits: Limits): number => dipOf(reserved(limits.plan.requestsPerMinute ?? 0, limits.reserve));

/**
 * Whether actions may run ahead of a pace, into the reserve, by what we reckon and nobody shows. Not in the first
 * window of a process: the one before may have done so just before it died, and a window has room for that once.
 */
const mayDip = (ledger: Ledger, lane: Lane, windowMs: DurationMs, now: MonotonicMs): boolean =>
  lane === "action" && now - ledger.startedAt >= windowMs;

/** Headers that state more than the category's own limit speak of something wider: they bind, but they don't lead. */
const speaksOfMore = (ledger: Ledger, category: Category, reading: Reading | null): boolean =>
  reading !== null && reading.limit > ledger.limits.categories[category].requests;

/** Whether the service itself shows what is left of the category, so that a burst is safe. */
function isLed(ledger: Ledger, category: Category, now: MonotonicMs): boolean {
  const { view, stated } = ledger.accounts[category];
  if (!stated || view.stated === null || speaksOfMore(ledger, category, view.stated)) return false;
  return now - view.stated.at <= ledger.limits.categories[category].windowMs;
}

function paceOpening(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Opening {
  const { pace, actions } = ledger.accounts[category];
  const common = paceOpensAt(pace, paceRate(ledger, category, lane, now));
  if (lane !== "action") return { at: common, hold: "pace" };
  return { at: Math.max(common, paceOpensAt(actions, categoryActionRate(ledger.limits, category))), hold: "pace" };
}

function paceRate(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): PaceRate {
  const { requests, burst, windowMs } = ledger.limits.categories[category];
  const even = categoryRate(ledger.limits, category);
  const dip = categoryDip(ledger.limits, category);
  if (isLed(ledger, category, now)) {
    const kept = reserved(requests, ledger.limits.reserve) - (lane === "action" ? dip : 0);
    return { ...even, capacity: Math.max(1, burst - kept) };
  }
  return mayDip(ledger, lane, windowMs, now) ? { ...even, capacity: even.capacity + dip } : even;
}

function viewOpening(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Opening {
  const { view, stated } = ledger.accounts[category];
  const { requests, windowMs } = ledger.limits.categories[category];
  const alone: Opening = { at: underWay(view) === 0 ? now : Number.POSITIVE_INFINITY, hold: "learning" };
  if (view.stated === null) return view.settled > 0 && !stated ? { at: now, hold: null } : alone;
  if (!stated) return { at: now, hold: null };
  if (now - view.stated.at > windowMs) return alone;
  const reserve = reserved(Math.min(requests, view.stated.limit), ledger.limits.reserve);
  const kept = lane === "action" ? reserve - dipOf(reserve) : reserve;
  if ((leastRemaining(view) ?? 0) > kept) return { at: now, hold: null };
  const reopens = Math.min(view.stated.resetAt ?? Number.POSITIVE_INFINITY, view.stated.at + windowMs + ROUNDING_MS);
  return now < reopens ? { at: reopens, hold: "remaining" } : alone;
}

function planOpening(ledger: Ledger, lane: Lane, now: MonotonicMs): Opening {
  const even = planRate(ledger.limits);
  if (even === null) return { at: now, hold: null };
  const ahead = mayDip(ledger, lane, MINUTE_MS, now) ? planDip(ledger.limits) : 0;
  const common = paceOpensAt(ledger.plan, { ...even, capacity: even.capacity + ahead });
  const actions = planActionRate(ledger.limits);
  if (lane !== "action" || actions === null) return { at: common, hold: "plan" };
  return { at: Math.max(common, paceOpensAt(ledger.planActions, actions)), hold: "plan" };
}

function hasRoom({ limits, inFlight }: Ledger, lane: Lane): boolean {
  const polling = concurrency(limits);
  const cap = limits.plan.concurrentRequests;
  if (polling === null || cap === null) return true;
  return inFlight < polling + (lane === "action" ? dipOf(cap - polling) : 0);
}

function hasMonth(ledger: Ledger, lane: Lane): boolean {
  const cap = ledger.limits.plan.callsPerMonth;
  return cap === null || ledger.monthUsed < (lane === "action" ? cap : pollingMonth(cap));
}
