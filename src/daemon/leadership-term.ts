import { RateLimiter } from "../api-client/rate-limiter.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import { errorMessage, type Result } from "../base/result.ts";
import type { Config } from "../config/schema/config.ts";
import { createMemoryStateStore } from "../journal/sqlite/store.ts";
import type { CallCounter, Clock, FactStore, SharedState, StateStore } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { type BillingMonth, MONTH_FACT, storedMonthOf } from "../rate-limit/monthly-budget.ts";
import { HOLDS_FACT } from "../rate-limit/stored-holds.ts";
import { isOfOtherService } from "../remediation/service-binding.ts";
import {
  openRemediationState,
  type RemediationState,
  type RemediationStateDeps,
} from "../remediation/state/journaled-state.ts";
import { limitsOf } from "./config-resources.ts";
import type { Runtime } from "./runtime.ts";

/**
 * What a daemon needs to poll and to act while it leads. A reload keeps it. A daemon that shares its state with no
 * other has one term. A new term knows only what is in the store, such as how long the service asked to wait. The
 * windows of the limits count as used, as after a restart.
 */
export interface LeadershipTerm {
  readonly store: StateStore;
  readonly remediationState: RemediationState;
  readonly rateLimiter: RateLimiter;
}

/** Key of the fact that holds the calls used before the state was created, and the first day of their month. */
export const CALLS_USED_BEFORE_FACT = "month.used_before";

const LEASE_ENDED =
  "the lease of this daemon has ended; it is renewed once the database answers, unless another daemon leads by then";

/** Opens the term of a daemon that has acquired the lease. Rejects if the state can't be read. */
export async function openSharedTerm(runtime: Runtime, config: Config, shared: SharedState): Promise<LeadershipTerm> {
  const mayCall = () => shared.lease.isLeader();
  const leadershipProblem = () => (mayCall() ? null : LEASE_ENDED);
  const options = { lostReason: null, assumesEarlierActions: true, leadershipProblem, mayCall };
  return openTerm(runtime, config, await shared.openStore(), options);
}

/**
 * Opens the term of a daemon that is alone, and reads its journal. If the journal is damaged, the daemon runs with a
 * state in memory: it exports metrics and takes no action until an operator repairs the journal and restarts the
 * daemon.
 */
export async function openOnlyTerm(
  runtime: Runtime,
  config: Config,
  opened: Result<StateStore, string>,
): Promise<LeadershipTerm> {
  let problem = opened.ok ? null : opened.error;
  if (opened.ok) {
    try {
      return await openTerm(runtime, config, opened.value, { lostReason: null, assumesEarlierActions: true });
    } catch (error) {
      await opened.value.close();
      problem = `the journal in ${config.state.path} can't be read (${errorMessage(error)}); put a backup in its place, or move it away`;
    }
  }
  const lostReason = `${problem}; then restart the daemon`;
  runtime.log.error({ problem: lostReason }, "journal damaged: no action is taken, and state is lost at exit");
  return openTerm(runtime, config, createMemoryStateStore(), { lostReason });
}

interface TermOptions extends Pick<RemediationStateDeps, "lostReason" | "assumesEarlierActions" | "leadershipProblem"> {
  /** Returns whether calls may be sent now. Absent means always. */
  readonly mayCall?: () => boolean;
}

async function openTerm(
  runtime: Runtime,
  config: Config,
  store: StateStore,
  options: TermOptions,
): Promise<LeadershipTerm> {
  const { clock, eventLog, metrics } = runtime;
  const stateDeps = { ...runtime, ...options, journal: store.journal, onChange: eventLog.record };
  const remediationState = await openRemediationState(stateDeps);
  const { facts } = remediationState;
  if (isOfOtherService(remediationState, config.service.base_url)) facts.write(HOLDS_FACT, "null");
  const rateLimiter = new RateLimiter({
    ...runtime,
    ...options,
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    calls: addCallsUsedBefore(store.calls, facts, config, clock),
    facts,
    onWait: (category, waitedMs) =>
      metrics.inc("proxywarden_ratelimit_wait_seconds_total", { category }, waitedMs / SECOND_MS),
    onExternalCalls: (category, calls) => metrics.inc("proxywarden_foreign_calls_total", { category }, calls),
  });
  return { store, remediationState, rateLimiter };
}

/** Time after the start within which the first responses show the service's clock. */
const CLOCK_KNOWN_MS: DurationMs = MINUTE_MS;

/**
 * Adds the calls that `limits.month.used` says were used before the state was created. They are recorded when the state
 * is new, for the current month, which changes with the first responses if the wall clock is wrong.
 */
function addCallsUsedBefore(calls: CallCounter, facts: FactStore, config: Config, clock: Clock): CallCounter {
  const { used } = config.limits.month;
  const recordUntil = facts.read(CALLS_USED_BEFORE_FACT) === null ? clock.monotonic() + CLOCK_KNOWN_MS : 0;
  return {
    ...calls,
    since(day) {
      if (clock.monotonic() < recordUntil) facts.write(CALLS_USED_BEFORE_FACT, JSON.stringify({ day, used }));
      return calls.since(day) + callsUsedBefore(facts.read(CALLS_USED_BEFORE_FACT), day);
    },
  };
}

/** Returns the month of the plan at `now` according to the facts of a state, and the API calls in it. */
export async function readMonthCalls(
  facts: ReadonlyMap<string, string>,
  callsSince: (day: string) => Promise<number>,
  now: EpochMs,
  startsOn: number,
): Promise<{ readonly month: BillingMonth; readonly calls: number }> {
  const month = storedMonthOf(facts.get(MONTH_FACT) ?? null, now, startsOn);
  const before = callsUsedBefore(facts.get(CALLS_USED_BEFORE_FACT) ?? null, month.firstDay);
  return { month, calls: (await callsSince(month.firstDay)) + before };
}

/**
 * Returns the calls since `day` (UTC) that were made before the state was created, according to {@link
 * CALLS_USED_BEFORE_FACT}.
 */
function callsUsedBefore(fact: string | null, day: string): number {
  const before = JSON.parse(fact ?? '{"day":"","used":0}') as { day: string; used: number };
  return day <= before.day ? before.used : 0;
}
