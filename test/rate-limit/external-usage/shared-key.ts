import { LIMIT_SCOPES } from "../../../src/rate-limit/external-usage/external-usage.ts";
import { createLedger, type Ledger } from "../../../src/rate-limit/ledger.ts";
import { parseLimitReading } from "../../../src/rate-limit/limit-headers.ts";
import type { Category } from "../../../src/rate-limit/limits.ts";
import { settlePermit, takePermit } from "../../../src/rate-limit/permits.ts";
import { createLimitedService, type LimiterSetup, type StatedHeaders } from "../limited-service.ts";
import { type Event, insert } from "../saturated-day.ts";

/**
 * What becomes of a call of ours. `lost_before` and `lost_after`: no answer, and the service did not count it, or did.
 * `unsent`: it never went out. `bare`: something in front of the service answers it, counts nothing, and says nothing.
 */
export type CallFate = "answered" | "lost_before" | "lost_after" | "unsent" | "bare";

/** One call of ours, or some of others, so long after the last. */
export interface SharedKeyEvent {
  readonly afterMs: number;
  readonly category: Category;
  /** Calls of others at once; 0: one call of ours. */
  readonly externalCalls: number;
  readonly fate: CallFate;
  readonly outMs: number;
  readonly backMs: number;
}

/** How long a lost call is waited for. */
const TIMEOUT_MS = 10_000;

/**
 * Plays calls of ours and of others under one key, with a ledger that is only asked to learn: ours go out when the script
 * says, not when the ledger would. Calls back after every answer with what was learned and what there was.
 */
export function runSharedKey(
  limiting: LimiterSetup,
  happenings: Iterable<SharedKeyEvent>,
  onAnswer?: (learned: number, admitted: number, now: number, ledger: Ledger) => void,
): { readonly learned: number; readonly likely: number; readonly admitted: number; readonly ledger: Ledger } {
  const service = createLimitedService(limiting);
  const ledger = createLedger(limiting.limits, 0, 0);
  const events: Event[] = [];
  const at = (time: number, run: () => void) => insert(events, { at: time, run });
  let now = 0;
  let admitted = 0;
  const learned = () => LIMIT_SCOPES.reduce((sum, scope) => sum + ledger.externalUsage[scope].provenCalls(), 0);
  const likely = () => LIMIT_SCOPES.reduce((sum, scope) => sum + ledger.externalUsage[scope].likelyCalls(), 0);

  function call({ category, fate: callFate, outMs, backMs }: SharedKeyEvent): void {
    const permit = takePermit(ledger, category, "detail", now);
    const giveBack = (outcome: Parameters<typeof settlePermit>[2]) => settlePermit(ledger, permit, outcome, 0.5, now);
    const arrive = () => {
      const stated = service.answer(category, now);
      if (callFate === "lost_after") at(now + TIMEOUT_MS, () => giveBack({ kind: "lost" }));
      else at(now + backMs, () => answer(stated));
    };
    const answer = ({ kind, headers, dateMs, retryAfterSeconds }: StatedHeaders) => {
      const statement = headers === null ? null : parseLimitReading({ ...headers, dateEpochMs: dateMs }, now);
      if (kind === "answered") giveBack({ kind, reading: statement });
      else giveBack({ kind, reading: statement, retryAfterMs: retryAfterSeconds! * 1_000 });
      onAnswer?.(learned(), admitted, now, ledger);
    };
    if (callFate === "unsent") giveBack({ kind: "unused" });
    else if (callFate === "lost_before") at(now + TIMEOUT_MS, () => giveBack({ kind: "lost" }));
    else if (callFate === "bare") at(now + outMs + backMs, () => giveBack({ kind: "answered", reading: null }));
    else at(now + outMs, arrive);
  }

  let time = 0;
  for (const happening of happenings) {
    time += happening.afterMs;
    for (let event = events.at(-1); event !== undefined && event.at <= time; event = events.at(-1)) {
      events.pop();
      now = event.at;
      event.run();
    }
    now = time;
    if (happening.externalCalls === 0) call(happening);
    for (let other = 0; other < happening.externalCalls; other++)
      if (service.answer(happening.category, now).kind === "answered") admitted++;
  }
  return { learned: learned(), likely: likely(), admitted, ledger };
}
