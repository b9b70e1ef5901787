import type { ApiClient } from "../api-client/client.ts";
import type { RateLimiter } from "../api-client/rate-limiter.ts";
import type { DurationMs } from "../base/duration.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, FactStore, Log } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import {
  billingMonthOf,
  type LastRun,
  type MonthUsage,
  pollingCallsLeft,
  runBudgetOf,
} from "../rate-limit/monthly-budget.ts";
import { type TrafficClass, trafficSharesOf } from "../scheduling/fair-queue.ts";
import { type Plan, planPolling } from "../scheduling/planner.ts";
import { callsPerRun, type PlanInput, pollingCapacityOf } from "../scheduling/polling-capacity.ts";
import { setPlanGauges } from "./plan-gauges.ts";
import { type CollectorRun, pacedClient } from "./run-pacing.ts";

/** How much there is to collect, as last seen. */
export interface NetworkSize extends Pick<PlanInput, "nodes" | "nodePages" | "sessionPages"> {
  readonly sessions: number;
}

/** The current plan, and the runs that follow it. */
export interface PollingPlan {
  current(): Plan;
  /** Recomputes the plan. */
  refresh(): Plan;
  /**
   * Begins a run of a collector. What it calls by the client that is returned counts as its calls, and is bounded by a
   * share of what is left of the month: beyond it, calls fail with the kind `budget`.
   */
  beginRun(collector: Collector): ApiClient;
  /** Ends the run. The duration of a successful run becomes the measured duration of the collector. */
  endRun(collector: Collector, succeeded: boolean): void;
  /** Marks a list as completely seen: from now on its size counts, not the size stored by an earlier process. */
  acceptRun(collector: "nodes" | "sessions"): void;
  /** How long a collector delays its first run to save calls of the month. */
  firstWait(collector: Collector): DurationMs;
}

/** Dependencies of the plan. */
export interface PollingPlanDeps {
  readonly history: CollectorHistory;
  readonly requestedIntervals: PlanInput["requestedIntervals"];
  readonly limits: PlanInput["limits"];
  readonly reads: ReadonlySet<Collector>;
  readonly monthStartsOn: number;
  /** Size of the network as this process has seen it. */
  readonly networkSize: () => NetworkSize;
  readonly client: ApiClient;
  readonly rateLimiter: RateLimiter;
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly metrics: DaemonMetrics;
  readonly log: Log;
}

/** What was learned of the collectors. It survives a reload. */
export interface CollectorHistory {
  readonly runs: Map<Collector, CollectorRun>;
  /** Duration of the last successful run. */
  readonly durations: Map<Collector, DurationMs>;
  /** Mean calls of a run, smoothed by {@link RUN_CALLS_SMOOTHING}; lookups and repeated pages included. */
  readonly calls: Map<Collector, number>;
  /** The last {@link CollectorPlan.pacedMs}. */
  readonly pacedIntervals: Map<Collector, DurationMs>;
  /** Lists that this process has seen completely. */
  readonly seenCollectors: Set<"nodes" | "sessions">;
  /** Consecutive failed runs of each collector. */
  readonly failedRuns: Map<Collector, number>;
}

/** Creates an empty history. */
export const createCollectorHistory = (): CollectorHistory => ({
  runs: new Map(),
  durations: new Map(),
  calls: new Map(),
  pacedIntervals: new Map(),
  seenCollectors: new Set(),
  failedRuns: new Map(),
});

/** The run that started last, stored for the next process. */
interface StoredRun {
  readonly at: EpochMs;
  readonly calls: number;
}

/**
 * If the month limits polling, a new process runs a collector once this share of its interval has passed since the last
 * process did. A process in a restart loop then spends at most 1 / RESTART_CALLS_SHARE times the planned calls, and since
 * the plan slows down with what is left, the calls still last until the end of the month.
 */
const RESTART_CALLS_SHARE = 0.25;

/** A list of unknown length has priority over routine reads until this many of its runs have failed. */
const FAILED_RUNS_BEFORE_SUCCESS_MAX = 3;

/** Weight of the last run in the mean number of calls. */
const RUN_CALLS_SMOOTHING = 0.2;

const runFactKey = (collector: Collector): string => `collect.${collector}.run`;
const NETWORK_SIZE_FACT = "collect.extent";

/** Creates the plan from what is known now. */
export function createPollingPlan(parts: PollingPlanDeps): PollingPlan {
  const { clock, facts, rateLimiter } = parts;
  const { runs, durations, calls, pacedIntervals: paced, seenCollectors: seen, failedRuns: failed } = parts.history;
  const lastProcess = new Map(COLLECTORS.map((collector) => [collector, storedRun(parts, collector)]));
  const storedSize = storedNetworkSize(facts.read);
  let isFailing = false;
  let current = planNow();

  function currentNetworkSize(): NetworkSize {
    const now = parts.networkSize();
    const { nodes, nodePages } = seen.has("nodes") ? now : largerOf(now, storedSize);
    const { sessions, sessionPages } = seen.has("sessions") ? now : largerOf(now, storedSize);
    return { nodes, nodePages, sessions, sessionPages };
  }

  /** What the next runs cost: the size of the network, and the mean calls of earlier walks. */
  function runCosts(): Pick<PlanInput, "nodes" | "nodePages" | "sessionPages" | "walkCalls"> {
    const callsOf = (collector: Collector) => calls.get(collector) ?? lastProcess.get(collector)?.calls ?? 0;
    return { ...currentNetworkSize(), walkCalls: { nodes: callsOf("nodes"), sessions: callsOf("sessions") } };
  }

  function monthState(): MonthUsage {
    const now = clock.now();
    return { callsUsed: rateLimiter.monthUsed(), leftMs: billingMonthOf(now, parts.monthStartsOn).endMs - now };
  }

  function lastRun(collector: Collector): LastRun | null {
    const run = runs.get(collector);
    if (run !== undefined) {
      const { startedAt, callsMade, isOver } = run;
      const all = isOver ? callsMade : Math.max(callsMade, callsPerRun(collector, currentNetworkSize()));
      return { sinceMs: clock.monotonic() - startedAt, calls: all, callsMade };
    }
    const last = lastProcess.get(collector) ?? null;
    return last === null
      ? null
      : { sinceMs: Math.max(0, clock.now() - last.at), calls: last.calls, callsMade: last.calls };
  }

  function planNow(): Plan {
    const lastRuns = COLLECTORS.flatMap((collector) => {
      const run = lastRun(collector);
      return run === null ? [] : [[collector, run] as const];
    });
    const input: PlanInput = {
      ...runCosts(),
      requestedIntervals: parts.requestedIntervals,
      limits: parts.limits,
      month: monthState(),
      runs: Object.fromEntries(lastRuns),
      measuredDurations: Object.fromEntries(durations),
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
    rateLimiter.setShares(trafficSharesOf(planned, pollingCapacityOf(input), listsOfUnknownSize()));
    setPlanGauges(planned, parts.metrics);
    return planned;
  }

  /** Lists of unknown size, except those whose runs keep failing. */
  function listsOfUnknownSize(): ReadonlySet<TrafficClass> {
    const hasNoData = (list: "nodes" | "sessions", pagesBefore: number) =>
      !seen.has(list) && pagesBefore === 0 && (failed.get(list) ?? 0) < FAILED_RUNS_BEFORE_SUCCESS_MAX;
    const lists = new Set<TrafficClass>();
    if (hasNoData("nodes", storedSize.nodePages)) lists.add("nodes");
    if (hasNoData("sessions", storedSize.sessionPages)) lists.add("sessions");
    return lists;
  }

  function storeRun(key: string, value: object): void {
    try {
      facts.write(key, JSON.stringify(value));
      isFailing = false;
    } catch (error) {
      if (!isFailing) parts.log.error({ err: error }, "fact not stored; after a restart planning starts without it");
      isFailing = true;
    }
  }

  return {
    current: () => current,
    refresh() {
      current = planNow();
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
      const mean = calls.get(collector) ?? run.callsMade;
      calls.set(collector, mean + (run.callsMade - mean) * RUN_CALLS_SMOOTHING);
      const { at, calls: expected } = storedRun(parts, collector) ?? { at: clock.now(), calls: 0 };
      if (run.callsMade > expected) storeRun(runFactKey(collector), { at, calls: run.callsMade } satisfies StoredRun);
      if (succeeded) durations.set(collector, clock.monotonic() - run.startedAt);
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
      const last = lastProcess.get(collector) ?? null;
      if (planned?.boundBy !== "month" || last === null) return 0;
      // After the clock was set back, do not wait for the time it showed before.
      const since = Math.max(0, clock.now() - last.at);
      return Math.max(0, planned.intervalMs * RESTART_CALLS_SHARE - since);
    },
  };
}

/** Size of a list that was not completely seen: no smaller than the last process knew. */
const largerOf = (now: NetworkSize, before: NetworkSize): NetworkSize => ({
  nodes: Math.max(now.nodes, before.nodes),
  nodePages: Math.max(now.nodePages, before.nodePages),
  sessions: Math.max(now.sessions, before.sessions),
  sessionPages: Math.max(now.sessionPages, before.sessionPages),
});

/** The run stored by the previous process; null if there is none, or it is unreadable. */
function storedRun({ facts }: PollingPlanDeps, collector: Collector): StoredRun | null {
  const { at, calls } = readFact(facts.read, runFactKey(collector)) as Partial<StoredRun>;
  return Number.isFinite(at) && Number.isFinite(calls) ? { at: at!, calls: calls! } : null;
}

/** The stored network size; 0 for whatever is missing or unreadable. */
export function storedNetworkSize(read: (key: string) => string | null): NetworkSize {
  const stored = readFact(read, NETWORK_SIZE_FACT) as Partial<NetworkSize>;
  const count = (value: number | undefined) => (Number.isFinite(value) && value! >= 0 ? value! : 0);
  return {
    nodes: count(stored.nodes),
    nodePages: count(stored.nodePages),
    sessions: count(stored.sessions),
    sessionPages: count(stored.sessionPages),
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
