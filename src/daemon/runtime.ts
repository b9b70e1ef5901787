import { createRateLimiter, type RateLimiter } from "../api-client/rate-limiter.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import { createDaemonMetrics, type DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { CallCounter, Clock, Cron, Log, StateStore } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { billingMonthOf } from "../rate-limit/monthly-budget.ts";
import { openRemediationState, type RemediationState } from "../remediation/state/journaled-state.ts";
import { createEventLog, type EventLog } from "../web/api/event-log.ts";
import { createHistory, type History } from "../web/api/history.ts";
import { createMetricsEndpoint, type MetricsEndpoint } from "../web/scrape/scrape-endpoint.ts";
import { limitsOf } from "./collection-settings.ts";

/** Time that each part of a shutdown may take. */
export interface ShutdownBudget {
  /** For the response to a POST in flight; after that it is aborted and journalled as in doubt. */
  readonly postMs: DurationMs;
  /** For queued notifications. */
  readonly notificationsMs: DurationMs;
  /** For HTTP responses under way. */
  readonly webMs: DurationMs;
}

/** After a SIGTERM the process exits within 10 s: these parts run one after another. */
export const SHUTDOWN_BUDGET: ShutdownBudget = {
  postMs: 7 * SECOND_MS,
  notificationsMs: SECOND_MS / 2,
  webMs: 2 * SECOND_MS,
};

/** User-Agent header of the daemon's requests. */
export const userAgentOf = (version: string): string => `proxywarden/${version}`;

type OpenedStateStore = Result<StateStore, { readonly kind?: string; readonly message: string }>;

/** What the daemon needs from outside; the demo and tests pass their own. */
export interface DaemonDeps {
  readonly clock: Clock;
  readonly cron: Cron;
  readonly random: Random;
  readonly log: Log & { setLevel(level: Config["log"]["level"]): void };
  readonly version: string;
  /** Loads the configuration; the error is every problem, a line each. It should not block the event loop. */
  readConfig(): Result<LoadedConfig, readonly string[]> | Promise<Result<LoadedConfig, readonly string[]>>;
  readFile(path: string): Result<string, string>;
  openStore(state: Config["state"]): OpenedStateStore | Promise<OpenedStateStore>;
  /** Creates a state store in memory, for use when the real one is damaged. */
  createMemoryStore(): StateStore;
}

/** What survives a reload: state, metrics and call counts. */
export interface Runtime {
  readonly startedAt: EpochMs;
  readonly store: StateStore;
  readonly remediationState: RemediationState;
  readonly metrics: DaemonMetrics;
  readonly exposition: MetricsEndpoint;
  readonly rateLimiter: RateLimiter;
  /** Recent decisions and actions, for the status page. */
  readonly eventLog: EventLog;
  /** Samples of the last hour. */
  readonly history: History;
}

/** Key of the fact that holds the calls used before the state was created, and the first day of their month. */
export const CALLS_USED_BEFORE_FACT = "month.used_before";

/** Opens the state, and creates what survives a reload. */
export async function openRuntime(deps: DaemonDeps, config: Config): Promise<Result<Runtime, readonly string[]>> {
  const { clock, log, version } = deps;
  const eventLog = createEventLog();
  const opened = await openStoreOrMemory(deps, config.state, eventLog);
  if (!opened.ok) return opened;
  const { store, remediationState } = opened.value;
  const metrics = createDaemonMetrics();
  metrics.set("proxywarden_build_info", { version }, 1);
  metrics.set("proxywarden_config_last_reload_successful", {}, 1);
  // A journal in SQLite has only one daemon.
  metrics.set("proxywarden_leader", {}, 1);
  const rateLimiter = createRateLimiter({
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    clock,
    random: deps.random,
    calls: addCallsUsedBefore(store, config, clock),
    log,
    onWait: (category, waitedMs) =>
      metrics.inc("proxywarden_ratelimit_wait_seconds_total", { category }, waitedMs / SECOND_MS),
    onExternalCalls: (category, calls) => metrics.inc("proxywarden_foreign_calls_total", { category }, calls),
  });
  return ok({
    startedAt: clock.now(),
    store,
    remediationState,
    metrics,
    exposition: createMetricsEndpoint({ clock, daemonMetrics: metrics }),
    rateLimiter,
    eventLog,
    history: createHistory(),
  });
}

type OpenedStore = Pick<Runtime, "store" | "remediationState">;

/**
 * Opens the state and reads the journal in it. If the journal is damaged, the daemon runs on a state in memory: it exports
 * metrics and takes no action until an operator repairs the journal. Any other problem is an error.
 */
async function openStoreOrMemory(
  deps: DaemonDeps,
  state: Config["state"],
  eventLog: EventLog,
): Promise<Result<OpenedStore, readonly string[]>> {
  const { clock, log } = deps;
  const key = state.postgres === undefined ? "state.path" : "state.postgres";
  const opened = await deps.openStore(state);
  if (!opened.ok) {
    const { kind, message } = opened.error;
    return kind === "damaged" ? ok(await fallBackToMemory(deps, message, eventLog)) : fail([`${key}: ${message}`]);
  }
  const store = opened.value;
  try {
    const options = { journal: store.journal, clock, log, lostReason: null, onChange: eventLog.record };
    return ok({ store, remediationState: await openRemediationState({ ...options, assumesEarlierActions: true }) });
  } catch (error) {
    await store.close();
    const why = error instanceof Error ? error.message : String(error);
    if (state.postgres !== undefined) return fail([`${key}: the journal can't be read: ${why}`]);
    const lost = `the journal in ${state.path} can't be read (${why}); put a backup in its place, or move it away`;
    return ok(await fallBackToMemory(deps, lost, eventLog));
  }
}

async function fallBackToMemory(
  { clock, log, createMemoryStore }: DaemonDeps,
  lost: string,
  eventLog: EventLog,
): Promise<OpenedStore> {
  log.error({ problem: lost }, "journal damaged: no action is taken, and state is lost at exit");
  const store = createMemoryStore();
  const options = { journal: store.journal, clock, log, lostReason: lost, onChange: eventLog.record };
  return { store, remediationState: await openRemediationState(options) };
}

/**
 * Adds the calls that `limits.month.used` says were used before the state was created. They are recorded once, when the
 * state is new, for the current month.
 */
function addCallsUsedBefore({ calls, facts }: StateStore, config: Config, clock: Clock): CallCounter {
  const { starts_on, used } = config.limits.month;
  if (facts.read(CALLS_USED_BEFORE_FACT) === null) {
    facts.write(CALLS_USED_BEFORE_FACT, JSON.stringify({ day: billingMonthOf(clock.now(), starts_on).firstDay, used }));
  }
  const recorded = facts.read(CALLS_USED_BEFORE_FACT);
  return {
    since: (day) => calls.since(day) + callsUsedBefore(recorded, day),
    add: (day, count) => calls.add(day, count),
  };
}

/** Calls since `day` (UTC) that were made before the state was created, according to {@link CALLS_USED_BEFORE_FACT}. */
export function callsUsedBefore(fact: string | null, day: string): number {
  const before = JSON.parse(fact ?? '{"day":"","used":0}') as { day: string; used: number };
  return day <= before.day ? before.used : 0;
}
