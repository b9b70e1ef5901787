import type { ApiClient } from "../api-client/client.ts";
import type { RateLimiter } from "../api-client/rate-limiter.ts";
import type { DurationMs } from "../base/duration.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, FactStore, Log } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import { billingMonthOf } from "../rate-limit/billing-month.ts";
import { type LastRun, type MonthUsage, pollingCallsLeft, runBudgetOf } from "../rate-limit/monthly-budget.ts";
import { type TrafficClass, trafficSharesOf } from "../scheduling/fair-queue.ts";
import { callsPerRun, type Plan, type PlanInput, planPolling, pollingCapacityOf } from "../scheduling/planner.ts";
import { setPlanGauges } from "./plan-gauges.ts";
import { type CollectorRun, pacedClient } from "./run-pacing.ts";

/** How much there is to be collected, by what was seen last. */
export interface NetworkSize extends Pick<PlanInput, "nodes" | "nodePages" | "sessionPages"> {
  readonly sessions: number;
}

/** The plan in force: made anew as what it is made of moves. */
export interface PollingPlan {
  current(): Plan;
  /** Makes the plan anew. */
  refresh(): Plan;
  /**
   * Begins a run of a collector. What it calls by the client that is returned counts as its calls, and is bounded by a
   * share of what is left of the month: beyond it, calls fail with the kind `budget`.
   */
  beginRun(collector: Collector): ApiClient;
  /** Ends it. Of a run that succeeded, the duration is taken as that of the collector's runs. */
  endRun(collector: Collector, succeeded: boolean): void;
  /** Extent of a collector's data was seen whole: from now on it counts, and no more what an earlier process saw. */
  acceptRun(collector: "nodes" | "sessions"): void;
  /** How long a collector waits for its first run, for the sake of the month. */
  firstWait(collector: Collector): DurationMs;
}

/** What planning stands on. */
export interface PollingPlanDeps {
  readonly history: CollectorHistory;
  readonly requestedIntervals: PlanInput["requestedIntervals"];
  readonly limits: PlanInput["limits"];
  readonly reads: ReadonlySet<Collector>;
  readonly monthStartsOn: number;
  /** As far as this process has seen it. */
  readonly networkSize: () => NetworkSize;
  readonly client: ApiClient;
  readonly rateLimiter: RateLimiter;
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly metrics: DaemonMetrics;
  readonly log: Log;
}

/** What was learned of the collectors. It outlives the planning of one configuration: a reload hands it to the next. */
export interface CollectorHistory {
  readonly runs: Map<Collector, CollectorRun>;
  /** How long the last run that succeeded took. */
  readonly measuredCalls: Map<Collector, DurationMs>;
  /** Calls that a run takes on average, by {@link RUN_CALLS_SMOOTHING}: look-ups and repeated pages included. */
  readonly calls: Map<Collector, number>;
  /** The last {@link CollectorPlan.pacedMs}. */
  readonly pacedIntervals: Map<Collector, DurationMs>;
  /** Lists whose extent this process has seen whole. */
  readonly seenCollectors: Set<"nodes" | "sessions">;
  /** How many runs of each collector failed before one succeeded. */
  readonly failedRuns: Map<Collector, number>;
}

/** Creates a memory in which nothing was learned yet. */
export const createCollectorHistory = (): CollectorHistory => ({
  runs: new Map(),
  measuredCalls: new Map(),
  calls: new Map(),
  pacedIntervals: new Map(),
  seenCollectors: new Set(),
  failedRuns: new Map(),
});

/** What is kept of the run that began last, for the process after this one. */
interface StoredRun {
  readonly at: EpochMs;
  readonly calls: number;
}

/**
 * Where the month is scarce a new process runs a collector once this share of its interval has passed since the last
 * process did. A process that is restarted over and over then spends the month at most so many times faster than
 * planned; as the plan slows down with what is left, the month still lasts to its end.
 */
const RESTART_CALLS_SHARE = 0.25;

/** A list of unknown length comes before routine reads until so many of its runs have failed. */
const FAILED_RUNS_BEFORE_SUCCESS_MAX = 3;

/** Weight of the last run in the average number of calls: a few runs settle it, and a page more now and then counts in part. */
const RUN_CALLS_SMOOTHING = 0.2;

const runFactKey = (collector: Collector): string => `collect.${collector}.run`;
const NETWORK_SIZE_FACT = "collect.extent";

/** A plan of what is known by now. */
export function createPollingPlan(parts: PollingPlanDeps): PollingPlan {
  const { clock, facts, rateLimiter } = parts;
  const {
    runs,
    measuredCalls: measured,
    calls,
    pacedIntervals: paced,
    seenCollectors: seen,
    failedRuns: failed,
  } = parts.history;
  const kept = new Map(COLLECTORS.map((collector) => [collector, storedRun(parts, collector)]));
  const before = storedNetworkSize(facts.read);
  let isFailing = false;
  let current = callsMade();

  function currentNetworkSize(): NetworkSize {
    const now = parts.networkSize();
    const { nodes, nodePages } = seen.has("nodes") ? now : largerOf(now, before);
    const { sessions, sessionPages } = seen.has("sessions") ? now : largerOf(now, before);
    return { nodes, nodePages, sessions, sessionPages };
  }

  /** What the next runs take: no fewer calls than runs took on average. */
  function runCosts(): NetworkSize {
    const networkSize = currentNetworkSize();
    const usual = (collector: Collector) => calls.get(collector) ?? kept.get(collector)?.calls ?? 0;
    return {
      ...networkSize,
      nodePages: Math.max(networkSize.nodePages, usual("nodes")),
      sessionPages: Math.max(networkSize.sessionPages, usual("sessions")),
    };
  }

  function monthState(): MonthUsage {
    const now = clock.now();
    return { callsUsed: rateLimiter.monthUsed(), leftMs: billingMonthOf(now, parts.monthStartsOn).endMs - now };
  }

  function createRun(collector: Collector): LastRun | null {
    const run = runs.get(collector);
    if (run !== undefined) {
      const { startedAt: beganAt, callsMade, isOver } = run;
      const all = isOver ? callsMade : Math.max(callsMade, callsPerRun(collector, currentNetworkSize()));
      return { sinceMs: clock.monotonic() - beganAt, calls: all, callsMade };
    }
    const last = kept.get(collector) ?? null;
    return last === null
      ? null
      : { sinceMs: Math.max(0, clock.now() - last.at), calls: last.calls, callsMade: last.calls };
  }

  function callsMade(): Plan {
    const durations = COLLECTORS.flatMap((collector) => {
      const run = createRun(collector);
      return run === null ? [] : [[collector, run] as const];
    });
    const input: PlanInput = {
      ...runCosts(),
      requestedIntervals: parts.requestedIntervals,
      limits: parts.limits,
      month: monthState(),
      runs: Object.fromEntries(durations),
      measuredCalls: Object.fromEntries(measured),
      pacedIntervals: Object.fromEntries(paced),
      actions: rateLimiter.recentActions(),
      externalCalls: rateLimiter.externalCalls(),
      learnedLimits: rateLimiter.learnedLimits(),
      reads: parts.reads,
    };
    const planned = planPolling(input);
    for (const collector of COLLECTORS) {
      if (planned[collector] !== null) paced.set(collector, planned[collector].pacedMs);
    }
    rateLimiter.setShares(trafficSharesOf(planned, pollingCapacityOf(input), defaultNetworkSize()));
    setPlanGauges(planned, parts.metrics);
    return planned;
  }

  /** Lists whose extent is unknown, except those whose runs keep failing: their first walk may never come. */
  function defaultNetworkSize(): ReadonlySet<TrafficClass> {
    const hasNoData = (list: "nodes" | "sessions", pagesBefore: number) =>
      !seen.has(list) && pagesBefore === 0 && (failed.get(list) ?? 0) < FAILED_RUNS_BEFORE_SUCCESS_MAX;
    const lists = new Set<TrafficClass>();
    if (hasNoData("nodes", before.nodePages)) lists.add("nodes");
    if (hasNoData("sessions", before.sessionPages)) lists.add("sessions");
    return lists;
  }

  function storeRun(key: string, value: object): void {
    try {
      facts.write(key, JSON.stringify(value));
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        parts.log.error({ err: error }, "the store refuses writes: a restart plans without what was seen");
      isFailing = true;
    }
  }

  return {
    current: () => current,
    refresh() {
      current = callsMade();
      return current;
    },
    beginRun(collector) {
      const run: CollectorRun = { startedAt: clock.monotonic(), callsMade: 0, isOver: false };
      const expected = Math.ceil(callsPerRun(collector, runCosts()));
      runs.set(collector, run);
      storeRun(runFactKey(collector), { at: clock.now(), calls: expected } satisfies StoredRun);
      return pacedClient(parts.client, run, {
        clock,
        budget: runBudgetOf(expected, pollingCallsLeft(parts.limits, monthState(), 0)),
        plan: () => current[collector],
      });
    },
    endRun(collector, succeeded) {
      const run = runs.get(collector);
      if (run === undefined) return;
      run.isOver = true;
      const before = calls.get(collector) ?? run.callsMade;
      calls.set(collector, before + (run.callsMade - before) * RUN_CALLS_SMOOTHING);
      const { at, calls: expected } = storedRun(parts, collector) ?? { at: clock.now(), calls: 0 };
      if (run.callsMade > expected) storeRun(runFactKey(collector), { at, calls: run.callsMade } satisfies StoredRun);
      if (succeeded) measured.set(collector, clock.monotonic() - run.startedAt);
      failed.set(collector, succeeded ? 0 : (failed.get(collector) ?? 0) + 1);
    },
    acceptRun(collector) {
      seen.add(collector);
      const networkSize = currentNetworkSize();
      const text = JSON.stringify(networkSize);
      if (facts.read(NETWORK_SIZE_FACT) !== text) storeRun(NETWORK_SIZE_FACT, networkSize);
    },
    firstWait(collector) {
      const planned = current[collector];
      const last = kept.get(collector) ?? null;
      if (planned?.boundBy !== "month" || last === null) return 0;
      // A clock that was set back must not wait for the moment it once showed.
      const since = Math.max(0, clock.now() - last.at);
      return Math.max(0, planned.intervalMs * RESTART_CALLS_SHARE - since);
    },
  };
}

/** Pages of what is not walked whole yet: no fewer than the last process knew of. */
const largerOf = (now: NetworkSize, before: NetworkSize): NetworkSize => ({
  nodes: Math.max(now.nodes, before.nodes),
  nodePages: Math.max(now.nodePages, before.nodePages),
  sessions: Math.max(now.sessions, before.sessions),
  sessionPages: Math.max(now.sessionPages, before.sessionPages),
});

/** What the process before this one left; a text of another version is none. */
function storedRun({ facts }: PollingPlanDeps, collector: Collector): StoredRun | null {
  const { at, calls } = readFact(facts.read, runFactKey(collector)) as Partial<StoredRun>;
  return Number.isFinite(at) && Number.isFinite(calls) ? { at: at!, calls: calls! } : null;
}

/** The extent that a process has kept; all of it 0 where the text is none, or another version's. */
export function storedNetworkSize(read: (key: string) => string | null): NetworkSize {
  const kept = readFact(read, NETWORK_SIZE_FACT) as Partial<NetworkSize>;
  const count = (value: number | undefined) => (Number.isFinite(value) && value! >= 0 ? value! : 0);
  return {
    nodes: count(kept.nodes),
    nodePages: count(kept.nodePages),
    sessions: count(kept.sessions),
    sessionPages: count(kept.sessionPages),
  };
}

function readFact(read: (key: string) => string | null, key: string): object {
  try {
    const value: unknown = JSON.parse(read(key) ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
