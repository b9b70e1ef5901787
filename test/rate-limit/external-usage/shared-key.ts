import { LIMIT_SCOPES } from "../../../src/rate-limit/external-usage/external-usage.ts";
import { createLedger, type Ledger } from "../../../src/rate-limit/ledger.ts";
import type { Category } from "../../../src/rate-limit/limits.ts";
import { type CallOutcome, settlePermit, takePermit } from "../../../src/rate-limit/permits.ts";
import { parseLimitReading } from "../../../src/rate-limit/stated-limit.ts";
import { createLimitedService, type LimiterSetup, type StatedHeaders } from "../limited-service.ts";
import { type Event, insert } from "../saturation/saturated-day.ts";

/**
 * Outcome of one of our calls. `lost_before`, `lost_after`: no response; the service did not count it, or did.
 * `unsent`: not sent. `bare`: answered by a proxy in front of the service, without headers and without being counted.
 */
export type CallResult = "answered" | "lost_before" | "lost_after" | "unsent" | "bare";

/** One of our calls, or some external ones, and the time since the previous event. */
export interface SharedKeyEvent {
  readonly afterMs: number;
  readonly category: Category;
  /** Number of concurrent external calls; 0: one call of ours. */
  readonly externalCalls: number;
  readonly result: CallResult;
  readonly outMs: number;
  readonly backMs: number;
}

/** Time-out of a lost call. */
const TIMEOUT_MS = 10_000;

/**
 * Runs a script of our calls and external ones under one key. Our calls are sent as scripted, not when the ledger
 * allows them. `onAnswer` is called after each response with the external calls that were proven and admitted.
 */
export function runSharedKey(
  limiting: LimiterSetup,
  script: Iterable<SharedKeyEvent>,
  onAnswer?: (learned: number, admitted: number, now: number, ledger: Ledger) => void,
): { readonly learned: number; readonly likely: number; readonly admitted: number; readonly ledger: Ledger } {
  const service = createLimitedService(limiting);
  const ledger = createLedger(limiting.limits, 0);
  const events: Event[] = [];
  const at = (time: number, run: () => void) => insert(events, { at: time, run });
  let now = 0;
  let admitted = 0;
  const learned = () => LIMIT_SCOPES.reduce((sum, scope) => sum + ledger.externalUsage[scope].provenCalls(), 0);
  const likely = () => LIMIT_SCOPES.reduce((sum, scope) => sum + ledger.externalUsage[scope].likelyCalls(), 0);

  function call({ category, result, outMs, backMs }: SharedKeyEvent): void {
    const permit = takePermit(ledger, category, "detail", now);
    const settle = (outcome: CallOutcome) => settlePermit(ledger, permit, outcome, 0.5, now);
    const arrive = () => {
      const stated = service.answer(category, now);
      if (result === "lost_after") at(now + TIMEOUT_MS, () => settle({ kind: "lost" }));
      else at(now + backMs, () => answer(stated));
    };
    const answer = ({ kind, headers, dateMs, retryAfterSeconds }: StatedHeaders) => {
      const statement = headers === null ? null : parseLimitReading({ ...headers, dateEpochMs: dateMs }, now);
      if (kind === "answered") settle({ kind, reading: statement });
      else settle({ kind, reading: statement, retryAfterMs: retryAfterSeconds! * 1_000 });
      onAnswer?.(learned(), admitted, now, ledger);
    };
    if (result === "unsent") settle({ kind: "unused" });
    else if (result === "lost_before") at(now + TIMEOUT_MS, () => settle({ kind: "lost" }));
    else if (result === "bare") at(now + outMs + backMs, () => settle({ kind: "answered", reading: null }));
    else at(now + outMs, arrive);
  }

  let time = 0;
  for (const step of script) {
    time += step.afterMs;
    for (let event = events.at(-1); event !== undefined && event.at <= time; event = events.at(-1)) {
      events.pop();
      now = event.at;
      event.run();
    }
    now = time;
    if (step.externalCalls === 0) call(step);
    for (let other = 0; other < step.externalCalls; other++)
      if (service.answer(step.category, now).kind === "answered") admitted++;
  }
  return { learned: learned(), likely: likely(), admitted, ledger };
}
