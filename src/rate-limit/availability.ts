import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { LOOKS_A_WINDOW } from "./external-usage/usage-of-limit.ts";
import { frontOpensAt } from "./gateway-limit.ts";
import { concurrency, type Ledger, speaksOfMore } from "./ledger.ts";
import { allowanceOf, type Category, dipOf, floorOf, type Lane, pollingMonth, reserved } from "./limits.ts";
import { expectedOfPlan, yieldsUntil } from "./external-usage/external-usage.ts";
import { paceOpensAt } from "./pacing.ts";
import { refusedUntil } from "./too-many-requests.ts";
import { categoryTerms, planTerms } from "./pace-rates.ts";
import { leastRemaining, ROUNDING_MS, settleLost, underWay } from "./limit-headers.ts";

/** What holds a call back: the values of `reason` wherever a wait is explained. */
export type Hold =
  | "refused"
  | "learning"
  | "learned"
  | "remaining"
  | "others"
  | "pace"
  | "plan"
  | "concurrency"
  | "month";

/** When a call may go (Infinity: not before something else happens first), and what holds it until then. */
export interface Opening {
  readonly at: MonotonicMs;
  readonly hold: Hold | null;
}

/**
 * Share of what polling may spend in a window that may go at once where the service shows that it is there, but for the
 * first window of a process, and where others are about. Beyond that, and what a bucket saved up over its limit, calls
 * come evenly: others come unannounced, and are seen by what each answer says.
 */
const AT_ONCE_SHARE = 0.25;
/** Where a call waits because of others, it is reckoned anew so often in a window. */
const RECHECKS_A_WINDOW = 12;

/** When a call of `lane` in `category` may go, and what holds it. All constraints are looked at; the last to open rules. */
export function opening(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Opening {
  settleLost(ledger.accounts[category].view, now);
  const left = leastRemaining(ledger.accounts[category].view);
  const constraints: Opening[] = [
    { at: refusedUntil(ledger, category, lane), hold: "refused" },
    viewOpening(ledger, category, lane, now),
    { at: yieldsUntil(ledger.others, ledger.limits, { category, lane, left }, now), hold: "others" },
    paceOpening(ledger, category, lane, now),
    { at: frontOpensAt(ledger, category, lane), hold: "learned" },
    planOpening(ledger, lane, now),
    { at: hasRoom(ledger, lane) ? now : Number.POSITIVE_INFINITY, hold: "concurrency" },
    { at: hasMonth(ledger, lane) ? now : Number.POSITIVE_INFINITY, hold: "month" },
  ];
  const last = constraints.reduce((latest, each) => (each.at > latest.at ? each : latest));
  if (last.at <= now) return { at: now, hold: null };
  // What others are expected to do may turn out less, and only a call of ours tells.
  const isOthers = last.hold === "others" || last.hold === "remaining";
  if (!isOthers || ledger.others[category].expected(now) === 0) return last;
  return { ...last, at: Math.min(last.at, now + ledger.limits.categories[category].windowMs / RECHECKS_A_WINDOW) };
}

/**
 * Whether actions may run ahead of a pace, into the reserve, by what we reckon and nobody shows. Not in the first
 * window of a process: the one before may have done so just before it died, and a window has room for that once.
 */
const mayDip = (ledger: Ledger, lane: Lane, windowMs: DurationMs, now: MonotonicMs): boolean =>
  lane === "action" && !isFirstWindow(ledger, windowMs, now);

const isFirstWindow = ({ startedAt }: Ledger, windowMs: DurationMs, now: MonotonicMs): boolean =>
  now - startedAt < windowMs;

/** Whether the service itself shows what is left of the category, so that a burst is safe. */
function isLed(ledger: Ledger, category: Category, now: MonotonicMs): boolean {
  const { view } = ledger.accounts[category];
  if (view.stated === null || speaksOfMore(ledger, category, view.stated)) return false;
  return now - view.stated.at <= ledger.limits.categories[category].windowMs;
}

function paceOpening(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Opening {
  const { limits, others } = ledger;
  const { pace, actions, view } = ledger.accounts[category];
  const { requests, burst, windowMs } = limits.categories[category];
  const expected = others[category].expected(now);
  const { dip } = allowanceOf(requests, limits.reserve, expected);
  const terms = categoryTerms(limits, category);
  let { capacity } = terms.even;
  if (isLed(ledger, category, now)) {
    const saved = Math.min(burst, leastRemaining(view) ?? 0) - requests;
    const atOnce = expected > 0 || isFirstWindow(ledger, windowMs, now) ? 0 : terms.polling * AT_ONCE_SHARE;
    capacity = Math.max(capacity, saved, atOnce) + (lane === "action" ? dip : 0);
  } else if (mayDip(ledger, lane, windowMs, now)) capacity += dip;
  const common = paceOpensAt(pace, { ...terms.even, capacity });
  return { at: lane === "action" ? Math.max(common, paceOpensAt(actions, terms.actions)) : common, hold: "pace" };
}

function viewOpening(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Opening {
  const { view, stated } = ledger.accounts[category];
  const { windowMs } = ledger.limits.categories[category];
  const alone: Opening = { at: underWay(view) === 0 ? now : Number.POSITIVE_INFINITY, hold: "learning" };
  if (view.stated === null) return view.settled > 0 && !stated ? { at: now, hold: null } : alone;
  if (now - view.stated.at > windowMs) return stated ? alone : { at: now, hold: null };
  if ((leastRemaining(view) ?? 0) > keptOf(ledger, category, lane, view.stated.limit, now))
    return { at: now, hold: null };
  const { limit, remaining, resetAt, at } = view.stated;
  const silent = at + windowMs + ROUNDING_MS;
  // Where next to nothing is left, the one call that a reset may bring back is as likely another user's.
  const isSpent = remaining <= floorOf(limit);
  // Where it is others for whom much is kept, or who had their part of it, a look now and then is affordable, and tells
  // whether it must be.
  const had = ledger.others[category].inWindow(now);
  const isForOthers = !isSpent && remaining + had > reserved(limit, ledger.limits.reserve);
  const looks = isForOthers ? at + windowMs / LOOKS_A_WINDOW : silent;
  const reopens = Math.min(isSpent ? silent : (resetAt ?? silent), looks, silent);
  return now < reopens ? { at: reopens, hold: "remaining" } : alone;
}

/**
 * What is left unspent of what the service shows. What others have had of it in this window they need no more: there
 * our own calls are counted instead.
 */
function keptOf({ limits, others }: Ledger, category: Category, lane: Lane, stated: number, now: MonotonicMs): number {
  const limit = Math.min(limits.categories[category].requests, stated);
  const reserve = reserved(limit, limits.reserve);
  const had = others[category].inWindow(now);
  const { kept } = allowanceOf(limit, limits.reserve, others[category].isBucket() ? 0 : others[category].expected(now));
  const still = had === 0 ? kept : Math.max(floorOf(limit), kept - had - floorOf(limit));
  return lane === "action" ? Math.min(still, reserve - dipOf(reserve)) : still;
}

function planOpening(ledger: Ledger, lane: Lane, now: MonotonicMs): Opening {
  const terms = planTerms(ledger.limits);
  const { others, limits } = ledger;
  const { dip } = allowanceOf(limits.plan.requestsPerMinute ?? 0, limits.reserve, expectedOfPlan(others, limits, now));
  const ahead = mayDip(ledger, lane, MINUTE_MS, now) ? dip : 0;
  const common = paceOpensAt(ledger.plan, { ...terms.even, capacity: terms.even.capacity + ahead });
  if (lane !== "action") return { at: common, hold: "plan" };
  return { at: Math.max(common, paceOpensAt(ledger.planActions, terms.actions)), hold: "plan" };
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
