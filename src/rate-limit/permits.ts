import { DAY_MS, type DurationMs, HOUR_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { endCall } from "./concurrent-calls.ts";
import { recordCallAnswered, recordCallInDoubt, recordCallRejected } from "./external-usage/external-usage.ts";
import { payGatewayLimit } from "./learned-limit.ts";
import type { Ledger, Permit } from "./ledger.ts";
import type { Category, Lane } from "./limits.ts";
import type { LimitReading } from "./stated-limit.ts";
import { recordAnswer, recordTooManyRequests } from "./too-many-requests.ts";
import { categoryPaceRates, payForCall, planPaceRates } from "./window-pace.ts";

/**
 * Outcome of a call. `answered` is any status but 429, with the wait that an overloaded service requested; `rate_limited`
 * is a 429; `lost` means no response, although the service may have counted the call; `abandoned` is the same, but the
 * client left, so the service may still be working on the call; `unused` means not sent and not counted.
 */
export type CallOutcome =
  | { readonly kind: "answered"; readonly reading: LimitReading | null; readonly retryAfterMs?: DurationMs | null }
  | { readonly kind: "rate_limited"; readonly reading: LimitReading | null; readonly retryAfterMs: DurationMs | null }
  | { readonly kind: "lost" }
  | { readonly kind: "abandoned" }
  | { readonly kind: "unused" };

/** Takes a permit. Call it only if `availabilityOf` returned `at <= now`. */
export function takePermit(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Permit {
  const state = ledger.categories[category];
  payForCall(state.pace, categoryPaceRates(ledger.limits, category), lane, now);
  payForCall(ledger.planPace, planPaceRates(ledger.limits), lane, now);
  payGatewayLimit(ledger, category, lane, now);
  for (const { own } of [ledger.externalUsage[category], ledger.externalUsage.plan]) own.sent.add(now);
  if (lane === "action") state.actionTimes = [...state.actionTimes.filter((at) => at > now - DAY_MS), now];
  ledger.inFlight++;
  ledger.monthUsed++;
  return { category, lane, at: now, settledBefore: ledger.externalUsage[category].own.settledBy(now) };
}

/** Number of calls for actions in the last hour and in the last day. */
export interface RecentActions {
  readonly hour: number;
  readonly day: number;
}

/** Returns the recent calls for actions in a category. */
export function recentActionsOf({ categories }: Ledger, category: Category, now: MonotonicMs): RecentActions {
  const countSince = (since: MonotonicMs) => categories[category].actionTimes.filter((at) => at > since).length;
  return { hour: countSince(now - HOUR_MS), day: countSince(now - DAY_MS) };
}

/** Returns a permit with the outcome of its call. `jitter`, 0 to 1, randomizes the backoff after a 429. */
export function settlePermit(
  ledger: Ledger,
  permit: Permit,
  outcome: CallOutcome,
  jitter: number,
  now: MonotonicMs,
): void {
  const { limits, externalUsage } = ledger;
  const { category } = permit;
  const state = ledger.categories[category];
  endCall(ledger, outcome.kind === "abandoned", now);
  if (outcome.kind === "unused") {
    // The pace is not refunded, because calls granted since then rely on it.
    ledger.monthUsed--;
    for (const { own } of [externalUsage[category], externalUsage.plan]) own.sent.remove(permit.at);
    return;
  }
  if (outcome.kind === "lost" || outcome.kind === "abandoned") {
    const countedBy = now + limits.categories[category].windowMs;
    recordCallInDoubt(ledger, category, countedBy, now);
    return;
  }
  const { reading } = outcome;
  // A 429 is compared with what was stated before it.
  if (outcome.kind === "rate_limited") {
    recordTooManyRequests(ledger, permit, outcome, jitter, now);
    recordCallRejected(ledger, permit, reading, now);
  } else {
    recordAnswer(ledger, permit, outcome.retryAfterMs ?? null, now);
    recordCallAnswered(ledger, permit, reading, now);
  }
  if (reading !== null) state.stated.record(permit.settledBefore, reading, now);
  state.wasStated = reading !== null;
}
