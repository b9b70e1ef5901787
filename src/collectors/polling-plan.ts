import type { ApiClient } from "../api-client/client.ts";
import type { RateLimiter } from "../api-client/rate-limiter.ts";
import { byName } from "../base/by-name.ts";
import type { DurationMs } from "../base/duration.ts";
import { parseJsonObject } from "../base/text.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, FactStore } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { type LastRun, type MonthUsage, pollingCallsLeft, runBudgetOf } from "../rate-limit/monthly-budget.ts";
import { type TrafficClass, trafficSharesOf } from "../scheduling/fair-queue.ts";
import { type CollectorPlan, FRESH_INTERVALS, type Plan, planPolling } from "../scheduling/planner.ts";
import { callsPerRun, type PlanInput, pollingCapacityOf } from "../scheduling/polling-capacity.ts";
import { setPlanGauges } from "./plan-gauges.ts";
import { type CollectorRun, pacedClient } from "./run-pacing.ts";

/** The counts in the size of the network, and the list whose walk shows each. */
const SIZES = { nodes: "nodes", nodePages: "nodes", sessions: "sessions", sessionPages: "sessions" } as const;
const SIZE_NAMES = Object.keys(SIZES) as readonly (keyof typeof SIZES)[];

/** Size of the network, as last seen. */
export type NetworkSize = Readonly<Record<keyof typeof SIZES, number>>;

/** Dependencies of the plan. */
interface PollingPlanDeps {
  readonly history: CollectorHistory;
  readonly requestedIntervals: PlanInput["requestedIntervals"];
  readonly limits: PlanInput["limits"];
  readonly reads: ReadonlySet<Collector>;
  /** Returns the size of the network as this process has seen it. */
  readonly networkSize: () => NetworkSize;
  readonly client: ApiClient;
  readonly rateLimiter: RateLimiter;
  /** Never throws. */
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly metrics: DaemonMetrics;
}

/** What was learned about the collectors. It survives a reload. */
type CollectorHistory = ReturnType<typeof createCollectorHistory>;

/** Creates an empty history of each collector. */
export const createCollectorHistory = () =>
  byName(COLLECTORS, () => ({
    run: null as CollectorRun | null,
    /** Duration of the last successful run, or 0 if there is none. */
    durationMs: 0 as DurationMs,
    /** Mean calls per run, smoothed by {@link RUN_CALLS_SMOOTHING}, including lookups and repeated pages. */
    calls: null as number | null,
    /** The last {@link CollectorPlan.pacedMs}. */
    pacedMs: null as DurationMs | null,
    /**
     * The longest recent {@link CollectorPlan.pacedMs}, and when it last applied. A shorter one replaces it after the
     * time in which three runs under the current plan should have replaced the data. Details, which are read one by
     * one, have none.
     */
    longest: { ms: 0 as DurationMs, at: 0 as MonotonicMs },
    /** Whether this process has seen the whole list. */
    isListSeen: false,
    /** Consecutive failed runs. */
    failedRuns: 0,
  }));

/** The last run, stored for the next process. */
interface StoredRun {
  readonly at: EpochMs;
  readonly calls: number;
}

/**
 * If the month limits polling, a new process runs a collector once this share of its interval has passed since the last
 * run of the previous process. A process in a restart loop then makes at most 1 / RESTART_CALLS_SHARE times the planned
 * calls. Since the plan slows down as calls are used up, they still last until the end of the month.
 */
const RESTART_CALLS_SHARE = 0.25;

/** A list of unknown length has priority over routine reads until this many of its runs have failed. */
const FAILED_RUNS_BEFORE_SUCCESS_MAX = 3;

/** Weight of the last run in the mean number of calls. */
const RUN_CALLS_SMOOTHING = 0.2;

const runFactKey = (collector: Collector): string => `collect.${collector}.run`;
/** Key of the fact that holds the size of the network, as it was last seen. */
export const NETWORK_SIZE_FACT = "collect.network_size";

/** The current plan, and the runs that follow it. */
export class PollingPlan {
  readonly #deps: PollingPlanDeps;
  /** The last run of each collector in the previous process. */
  readonly #storedRuns: Readonly<Record<Collector, CollectorRun | null>>;
  readonly #storedSize: NetworkSize;
  #current: Plan;

  constructor(deps: PollingPlanDeps) {
    this.#deps = deps;
    this.#storedRuns = byName(COLLECTORS, (collector) => this.#previousRun(collector));
    this.#storedSize = storedNetworkSize(deps.facts.read(NETWORK_SIZE_FACT));
    this.#current = this.#computePlan();
  }

  current(): Plan {
    return this.#current;
  }

  /** Recomputes the plan. */
  refresh(): void {
    this.#current = this.#computePlan();
  }

  /**
   * Begins a run of a collector. Calls through the returned client are counted as the run's calls and bounded by a
   * share of the calls left in the month; calls beyond it fail with the kind `budget`.
   */
  beginRun(collector: Collector): ApiClient {
    const { client, clock, history, limits } = this.#deps;
    const run: CollectorRun = { startedAt: clock.monotonic(), callsMade: 0, isOver: false };
    const expected = Math.ceil(callsPerRun(collector, this.#runCosts()));
    history[collector].run = run;
    this.#store(runFactKey(collector), { at: clock.now(), calls: expected } satisfies StoredRun);
    return pacedClient(client, run, {
      clock,
      budget: runBudgetOf(expected, pollingCallsLeft(limits, this.#monthUsage(), 0)),
      plan: () => this.#current[collector],
    });
  }

  /** Ends the run. The duration of a successful run becomes the measured duration of the collector. */
  endRun(collector: Collector, succeeded: boolean): void {
    const { clock } = this.#deps;
    const past = this.#deps.history[collector];
    const { run } = past;
    if (run === null) return;
    run.isOver = true;
    const mean = past.calls ?? run.callsMade;
    past.calls = mean + (run.callsMade - mean) * RUN_CALLS_SMOOTHING;
    const { at, calls } = this.#readRun(collector) ?? { at: clock.now(), calls: 0 };
    if (run.callsMade > calls) {
      this.#store(runFactKey(collector), { at, calls: run.callsMade } satisfies StoredRun);
    }
    if (succeeded) past.durationMs = clock.monotonic() - run.startedAt;
    past.failedRuns = succeeded ? 0 : past.failedRuns + 1;
  }

  /**
   * Records that a list was seen completely. From now on its size is used instead of the size stored by an earlier
   * process.
   */
  recordCompleteList(list: "nodes" | "sessions"): void {
    this.#deps.history[list].isListSeen = true;
    const networkSize = this.#networkSize();
    if (this.#deps.facts.read(NETWORK_SIZE_FACT) !== JSON.stringify(networkSize)) {
      this.#store(NETWORK_SIZE_FACT, networkSize);
    }
  }

  /** Returns by how long a collector delays its first run to save calls of the month. */
  firstWait(collector: Collector): DurationMs {
    const planned = this.#current[collector];
    const stored = this.#storedRuns[collector];
    if (planned?.boundBy !== "month" || stored === null) return 0;
    return Math.max(0, planned.intervalMs * RESTART_CALLS_SHARE - this.#timeSince(stored));
  }

  #computePlan(): Plan {
    const { history, limits, metrics, rateLimiter, reads, requestedIntervals } = this.#deps;
    const input: PlanInput = {
      ...this.#runCosts(),
      requestedIntervals,
      limits,
      month: this.#monthUsage(),
      runs: byName(COLLECTORS, (collector) => this.#lastRun(collector)),
      measuredDurations: byName(COLLECTORS, (collector) => history[collector].durationMs),
      pacedIntervals: byName(COLLECTORS, (collector) => history[collector].pacedMs),
      longestIntervals: byName(COLLECTORS, (collector) => history[collector].longest.ms),
      actions: rateLimiter.recentActions(),
      externalCalls: rateLimiter.externalCalls(),
      learnedLimits: rateLimiter.learnedLimits(),
      reads,
    };
    const plan = planPolling(input);
    for (const collector of COLLECTORS) if (plan[collector] !== null) this.#recordInterval(collector, plan[collector]);
    rateLimiter.setShares(trafficSharesOf(plan, pollingCapacityOf(input), this.#listsOfUnknownSize()));
    setPlanGauges(plan, metrics);
    return plan;
  }

  #recordInterval(collector: Collector, { intervalMs, pacedMs }: CollectorPlan): void {
    const past = this.#deps.history[collector];
    // The previous plan applied until now.
    const ms = Math.max(pacedMs, past.pacedMs ?? 0);
    past.pacedMs = pacedMs;
    if (collector === "details") return;
    const at = this.#deps.clock.monotonic();
    const { longest } = past;
    const keptMs = FRESH_INTERVALS * Math.max(pacedMs, past.durationMs);
    if (ms >= longest.ms || at - longest.at > keptMs) past.longest = { ms, at };
    // The next run is postponed to the next month.
    else if (intervalMs > pacedMs) longest.at = at;
  }

  /** Returns what the next runs cost: the size of the network, and the mean calls of earlier walks. */
  #runCosts(): Pick<PlanInput, "nodes" | "nodePages" | "sessionPages" | "walkCalls"> {
    const callsOf = (collector: Collector) =>
      this.#deps.history[collector].calls ?? this.#storedRuns[collector]?.callsMade ?? 0;
    return { ...this.#networkSize(), walkCalls: { nodes: callsOf("nodes"), sessions: callsOf("sessions") } };
  }

  /**
   * Returns the size of the network. A list that was not seen completely is assumed to be at least as large as the
   * previous process saw it.
   */
  #networkSize(): NetworkSize {
    const seen = this.#deps.networkSize();
    const { history } = this.#deps;
    return byName(SIZE_NAMES, (size) =>
      history[SIZES[size]].isListSeen ? seen[size] : Math.max(seen[size], this.#storedSize[size]),
    );
  }

  #monthUsage(): MonthUsage {
    const { rateLimiter } = this.#deps;
    return { callsUsed: rateLimiter.monthUsed(), leftMs: rateLimiter.monthLeftMs() };
  }

  #lastRun(collector: Collector): LastRun | null {
    const run = this.#deps.history[collector].run ?? this.#storedRuns[collector];
    if (run === null) return null;
    const { callsMade, isOver } = run;
    const calls = isOver ? callsMade : Math.max(callsMade, callsPerRun(collector, this.#networkSize()));
    return { sinceMs: this.#timeSince(run), calls, callsMade };
  }

  #timeSince({ startedAt }: CollectorRun): DurationMs {
    return this.#deps.clock.monotonic() - startedAt;
  }

  /** Returns the stored run of the previous process. If the wall clock was set back since, the run counts as begun now. */
  #previousRun(collector: Collector): CollectorRun | null {
    const { clock } = this.#deps;
    const stored = this.#readRun(collector);
    if (stored === null) return null;
    const startedAt = clock.monotonic() - Math.max(0, clock.now() - stored.at);
    return { startedAt, callsMade: stored.calls, isOver: true };
  }

  /** Returns the lists of unknown size, except those whose runs keep failing. */
  #listsOfUnknownSize(): ReadonlySet<TrafficClass> {
    const { history } = this.#deps;
    const storedPages = { nodes: this.#storedSize.nodePages, sessions: this.#storedSize.sessionPages };
    const isUnknown = (list: "nodes" | "sessions") =>
      !history[list].isListSeen && storedPages[list] === 0 && history[list].failedRuns < FAILED_RUNS_BEFORE_SUCCESS_MAX;
    return new Set((["nodes", "sessions"] as const).filter(isUnknown));
  }

  /** Returns the stored run, or null if there is none, or it is unreadable. */
  #readRun(collector: Collector): StoredRun | null {
    const { at, calls } = parseJsonObject(this.#deps.facts.read(runFactKey(collector))) as Partial<StoredRun>;
    return Number.isFinite(at) && Number.isFinite(calls) ? { at: at!, calls: calls! } : null;
  }

  #store(key: string, value: object): void {
    this.#deps.facts.write(key, JSON.stringify(value));
  }
}

/** Returns the network size in the value of {@link NETWORK_SIZE_FACT}; a missing or unreadable count is 0. */
export function storedNetworkSize(fact: string | null): NetworkSize {
  const stored = parseJsonObject(fact) as Partial<NetworkSize>;
  return byName(SIZE_NAMES, (size) => {
    const count = stored[size];
    return Number.isFinite(count) && count! >= 0 ? count! : 0;
  });
}
