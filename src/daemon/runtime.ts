import type { Random } from "../base/random.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import { createDaemonMetrics, type DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, Log, SharedState, StateStore } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { createEventLog, type EventLog } from "../web/api/event-log.ts";
import { createHistory, type History } from "../web/api/history.ts";
import { MetricsEndpoint } from "../web/scrape/metrics-endpoint.ts";
import { type LeadershipTerm, openOnlyTerm } from "./leadership-term.ts";

type OpenedState = Result<StateStore | SharedState, { readonly kind?: string; readonly message: string }>;

/** What the daemon needs from outside. The demo and tests pass their own. */
export interface DaemonDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log & { setLevel(level: Config["log"]["level"]): void };
  readonly version: string;
  /**
   * Loads the configuration for a reload. The error lists every problem. It should not block the event loop. `stop`
   * aborts when the daemon stops; the result does not matter then.
   */
  readConfig(
    stop: AbortSignal,
  ): Result<LoadedConfig, readonly string[]> | Promise<Result<LoadedConfig, readonly string[]>>;
  /** Opens the state, which several daemons may share. The error begins with a key, unless the state is damaged. */
  openStore(state: Config["state"]): OpenedState | Promise<OpenedState>;
}

/** What survives reloads and changes of leadership, and what the daemon needs from outside. */
export interface Runtime extends DaemonDeps {
  readonly startedAt: EpochMs;
  /** The state that this daemon shares with others, or null if it is alone and always leads. */
  readonly shared: SharedState | null;
  readonly metrics: DaemonMetrics;
  readonly exposition: MetricsEndpoint;
  /** Recent decisions, actions and operator commands, for the status page. */
  readonly eventLog: EventLog;
  /** Samples of the last hour. */
  readonly history: History;
}

/**
 * Opens the state, and creates the runtime. `term` is that of a daemon that is alone, or null if the daemon shares its
 * state and stands by.
 */
export async function openRuntime(
  deps: DaemonDeps,
  config: Config,
): Promise<Result<{ readonly runtime: Runtime; readonly term: LeadershipTerm | null }, readonly string[]>> {
  const { clock, version } = deps;
  const opened = await deps.openStore(config.state);
  const isDamaged = !opened.ok && opened.error.kind === "damaged";
  if (!opened.ok && !isDamaged) return fail([opened.error.message]);
  const shared = opened.ok && "openStore" in opened.value ? opened.value : null;
  const metrics = createDaemonMetrics();
  metrics.set("proxywarden_build_info", { version }, 1);
  metrics.set("proxywarden_config_last_reload_successful", {}, 1);
  const runtime: Runtime = {
    ...deps,
    startedAt: clock.now(),
    shared,
    metrics,
    exposition: new MetricsEndpoint({ clock, daemonMetrics: metrics }),
    eventLog: createEventLog(),
    history: createHistory(),
  };
  if (shared !== null) return ok({ runtime, term: null });
  const store = opened.ok ? ok(opened.value as StateStore) : fail(opened.error.message);
  return ok({ runtime, term: await openOnlyTerm(runtime, config, store) });
}
