import { createRateLimiter, type RateLimiter } from "../api-client/rate-limiter.ts";
import { SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import { createDaemonMetrics, type DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { CallCounter, Clock, Cron, Log, StateStore } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { billingMonthOf } from "../rate-limit/billing-month.ts";
import { openRemediationState, type RemediationState } from "../remediation/state/journaled-state.ts";
import { createEventLog, type EventLog } from "../web/api/event-log.ts";
import { createHistory, type History } from "../web/api/history.ts";
import { createMetricsEndpoint, type MetricsEndpoint } from "../web/scrape/scrape-endpoint.ts";
import { limitsOf } from "./collection-settings.ts";

/** The strangers that the daemon is made of; a demo and a test bring others than a service does. */
export interface DaemonDeps {
  readonly clock: Clock;
  readonly cron: Cron;
  readonly random: Random;
  readonly log: Log & { setLevel(level: Config["log"]["level"]): void };
  readonly version: string;
  /** Reads the configuration; the error is every problem, a line each. It should not block the event loop. */
  readConfig(): Result<LoadedConfig, readonly string[]> | Promise<Result<LoadedConfig, readonly string[]>>;
  readFile(path: string): Result<string, string>;
  openStore(folder: string): Result<StateStore, { readonly kind?: string; readonly message: string }>;
  /** A store that lives as long as the process: what is left where the real one is damaged. */
  createMemoryStore(): StateStore;
}

/** What outlives every reload: what was spent, and what is shown. */
export interface Runtime {
  readonly startedAt: EpochMs;
  readonly store: StateStore;
  readonly remediationState: RemediationState;
  readonly metrics: DaemonMetrics;
  readonly exposition: MetricsEndpoint;
  readonly rateLimiter: RateLimiter;
  /** What was decided and done of late, for those who look on. */
  readonly eventLog: EventLog;
  /** How the last hour went. */
  readonly history: History;
}

/** The fact that says how many calls were used before the store was made, and when their month began. */
export const CALLS_USED_BEFORE_FACT = "month.used_before";

/** Opens the store and lays the rest upon it. */
export function openRuntime(parts: DaemonDeps, config: Config): Result<Runtime, readonly string[]> {
  const { clock, log, version } = parts;
  const eventLog = createEventLog();
  const opened = openStoreOrMemory(parts, config.state.path, eventLog);
  if (!opened.ok) return opened;
  const { store, remediationState } = opened.value;
  const metrics = createDaemonMetrics();
  metrics.set("proxywarden_build_info", { version }, 1);
  metrics.set("proxywarden_config_last_reload_successful", {}, 1);
  const rateLimiter = createRateLimiter({
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    clock,
    random: parts.random,
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

/** What is remembered, and how it is written down. */
type OpenedStore = Pick<Runtime, "store" | "remediationState">;

/**
 * Opens the store, and reads the journal in it. One that is damaged must not end the watching: the daemon goes on without
 * it, shows what it sees and touches nothing, until a person has mended it. Whatever else is wrong is for a person to see
 * to at once.
 */
function openStoreOrMemory(
  parts: DaemonDeps,
  folder: string,
  eventLog: EventLog,
): Result<OpenedStore, readonly string[]> {
  const { clock, log } = parts;
  const opened = parts.openStore(folder);
  if (!opened.ok) {
    const { kind, message } = opened.error;
    return kind === "damaged" ? ok(fallBackToMemory(parts, message, eventLog)) : fail([`state.path: ${message}`]);
  }
  const store = opened.value;
  try {
    const remediationState = openRemediationState({
      journal: store.journal,
      clock,
      log,
      lostReason: null,
      assumesEarlierActions: true,
      onChange: eventLog.record,
    });
    return ok({ store, remediationState });
  } catch (error) {
    store.close();
    const why = error instanceof Error ? error.message : String(error);
    return ok(
      fallBackToMemory(
        parts,
        `the journal in ${folder} can't be read (${why}); put a backup in its place, or move it away`,
        eventLog,
      ),
    );
  }
}

function fallBackToMemory(
  { clock, log, createMemoryStore }: DaemonDeps,
  lost: string,
  eventLog: EventLog,
): OpenedStore {
  log.error({ problem: lost }, "the journal is damaged: no node is touched, and nothing outlives this process");
  const store = createMemoryStore();
  return {
    store,
    remediationState: openRemediationState({
      journal: store.journal,
      clock,
      log,
      lostReason: lost,
      onChange: eventLog.record,
    }),
  };
}

/**
 * Adds the calls that the configuration says were used before there was a store. They are taken down once, when the
 * store is new, for the month that it is then.
 */
function addCallsUsedBefore({ calls, facts }: StateStore, config: Config, clock: Clock): CallCounter {
  const { starts_on, used } = config.limits.month;
  if (facts.read(CALLS_USED_BEFORE_FACT) === null) {
    facts.write(CALLS_USED_BEFORE_FACT, JSON.stringify({ day: billingMonthOf(clock.now(), starts_on).firstDay, used }));
  }
  const kept = facts.read(CALLS_USED_BEFORE_FACT);
  return {
    since: (day) => calls.since(day) + callsUsedBefore(kept, day),
    add: (day, count) => calls.add(day, count),
  };
}

/** Calls from that day (UTC) on that were made before there was a store, by what the fact of them says. */
export function callsUsedBefore(fact: string | null, day: string): number {
  const before = JSON.parse(fact ?? '{"day":"","used":0}') as { day: string; used: number };
  return day <= before.day ? before.used : 0;
}
