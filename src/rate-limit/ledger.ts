import type { DurationMs } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Ledger, Permit } from "./account.ts";
import {
  recordCallAnswered,
  recordCallInDoubt,
  recordCallRejected,
  recordCallSent,
  recordCallUnsent,
} from "./external-usage/external-usage.ts";
import { payGatewayLimit } from "./gateway-limit.ts";
import { type LimitReading, recordAnswered, recordLost, recordSent, recordUnsent } from "./limit-headers.ts";
import { allowanceOf, type Category, type Lane, type Limits, reservedCalls } from "./limits.ts";
import { categoryPaceRates, planPaceRates } from "./pace-rates.ts";
import { payForCall } from "./pacing.ts";
import { headersExplainRejection, recordAnswer, recordTooManyRequests } from "./too-many-requests.ts";

/**
 * Outcome of a call. `answered`: any status but 429; `retryAfterMs`: wait requested by an overloaded service. `refused`: 429.
 * `lost`: no response, the service may have counted it. `unused`: not sent, and not counted.
 */
export type CallOutcome =
  | { readonly kind: "answered"; readonly reading: LimitReading | null; readonly retryAfterMs?: DurationMs | null }
  | { readonly kind: "refused"; readonly reading: LimitReading | null; readonly retryAfterMs: DurationMs | null }
  | { readonly kind: "lost" }
  | { readonly kind: "unused" };

/** Takes a permit. Call it only if `availabilityOf` returned `at <= now`. */
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

/** Returns a permit with the outcome of its call. `jitter`, 0 to 1, randomizes the backoff after a 429. */
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
    // The pace is not refunded: calls granted since then rely on it.
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
 * Polling calls per window of `category`: its requests less the reserve and what others need beyond it, at most `learned`,
 * the limit learned from 429s; null: none.
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

/** Polling calls per minute over all categories; null: the plan has no such limit. */
export function pollingCallsPerMinute(limits: Limits, externalUsage = 0): number | null {
  const requests = limits.plan.requestsPerMinute;
  return requests === null ? null : allowanceOf(requests, limits.reserve, externalUsage).polling;
}

/** Maximum number of concurrent polling calls; null: unlimited. */
export function pollingConcurrency(limits: Limits): number | null {
  const cap = limits.plan.concurrentRequests;
  return cap === null ? null : Math.max(1, cap - reservedCalls(cap, limits.reserve));
}

/** Whether headers state a limit wider than the category's own: it binds, but does not allow bursts. */
export const statesWiderLimit = (ledger: Ledger, category: Category, reading: LimitReading | null): boolean =>
  reading !== null && reading.limit > ledger.limits.categories[category].requests;
