import type { DurationMs } from "../base/duration.ts";
import { type Flow, sharesOf } from "../scheduling/fair-queue.ts";
import { planMonth } from "../rate-limit/billing-month.ts";
import { type LastRun, type MonthState, pollingLeft, runBudget } from "../rate-limit/monthly-budget.ts";
import { callsOf, type Plan, type PlanInput, plan, roomOf } from "../scheduling/planner.ts";
import type { WardenMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, FactStore, Log } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import type { ServiceClient } from "../api-client/client.ts";
import type { PermitOffice } from "../api-client/rate-limiter.ts";
import { clientOfRun, type Run } from "./run-pacing.ts";
import { showPlan } from "./plan-gauges.ts";

/** How much there is to be collected, by what was seen last. */
export interface Extent extends Pick<PlanInput, "nodes" | "nodePages" | "sessionPages"> {
  readonly sessions: number;
}

/** The plan in force: made anew as what it is made of moves. */
export interface Planning {
  current(): Plan;
  /** Makes the plan anew. */
  renew(): Plan;
  /**
   * Begins a run of a collector. What it calls by the client that is returned counts as its calls, and is bounded by a
   * share of what is left of the month: beyond it, calls fail with the kind `budget`.
   */
  begin(collector: Collector): ServiceClient;
  /** Ends it. Of a run that succeeded, the duration is taken as that of the collector's runs. */
  end(collector: Collector, succeeded: boolean): void;
  /** Extent of a collector's data was seen whole: from now on it counts, and no more what an earlier process saw. */
  settle(collector: "nodes" | "sessions"): void;
  /** How long a collector waits for its first run, for the sake of the month. */
  firstWait(collector: Collector): DurationMs;
}

/** What planning stands on. */
export interface PlanningParts {
  readonly memory: PlanningMemory;
  readonly wishes: PlanInput["wishes"];
  readonly limits: PlanInput["limits"];
  readonly reads: ReadonlySet<Collector>;
  readonly monthStartsOn: number;
  /** As far as this process has seen it. */
  readonly extent: () => Extent;
  readonly client: ServiceClient;
  readonly office: PermitOffice;
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly metrics: WardenMetrics;
  readonly log: Log;
}

/** What was learned of the collectors. It outlives the planning of one configuration: a reload hands it to the next. */
export interface PlanningMemory {
  readonly runs: Map<Collector, Run>;
  /** How long the last run that succeeded took. */
  readonly measured: Map<Collector, DurationMs>;
  /** Calls that a run takes on average, by {@link RUN_CALLS_SMOOTHING}: look-ups and repeated pages included. */
  readonly calls: Map<Collector, number>;
  /** The last {@link CollectorPlan.pacedMs}. */
  readonly paced: Map<Collector, DurationMs>;
  /** Lists whose extent this process has seen whole. */
  readonly seen: Set<"nodes" | "sessions">;
  /** How many runs of each collector failed before one succeeded. */
  readonly failed: Map<Collector, number>;
}

/** Creates a memory in which nothing was learned yet. */
export const createPlanningMemory = (): PlanningMemory => ({
  runs: new Map(),
  measured: new Map(),
  calls: new Map(),
  paced: new Map(),
  seen: new Set(),
  failed: new Map(),
});

/** What is kept of the run that began last, for the process after this one. */
interface KeptRun {
  readonly at: EpochMs;
  readonly calls: number;
}

/**
 * Where the month is scarce a new process runs a collector once this share of its interval has passed since the last
 * process did. A process that is restarted over and over then spends the month at most so many times faster than
 * planned; as the plan slows down with what is left, the month still lasts to its end.
 */
const RESTART_SHARE = 0.25;

/** A list of unknown length comes before routine reads until so many of its runs have failed. */
const UNSEEN_FAILURES_MAX = 3;

/** Weight of the last run in the average number of calls: a few runs settle it, and a page more now and then counts in part. */
const RUN_CALLS_SMOOTHING = 0.2;

const runFact = (collector: Collector): string => `collect.${collector}.run`;
const EXTENT = "collect.extent";

/** A plan of what is known by now. */
export function createPlanning(parts: PlanningParts): Planning {
  const { clock, facts, office } = parts;
  const { runs, measured, calls, paced, seen, failed } = parts.memory;
  const kept = new Map(COLLECTORS.map((collector) => [collector, keptRun(parts, collector)]));
  const before = extentKept(facts.read);
  let isFailing = false;
  let current = made();

  function extentNow(): Extent {
    const now = parts.extent();
    const { nodes, nodePages } = seen.has("nodes") ? now : larger(now, before);
    const { sessions, sessionPages } = seen.has("sessions") ? now : larger(now, before);
    return { nodes, nodePages, sessions, sessionPages };
  }

  /** What the next runs take: no fewer calls than runs took on average. */
  function callsNow(): Extent {
    const extent = extentNow();
    const usual = (collector: Collector) => calls.get(collector) ?? kept.get(collector)?.calls ?? 0;
    return {
      ...extent,
      nodePages: Math.max(extent.nodePages, usual("nodes")),
      sessionPages: Math.max(extent.sessionPages, usual("sessions")),
    };
  }

  function monthNow(): MonthState {
    const now = clock.now();
    return { used: office.monthUsed(), leftMs: planMonth(now, parts.monthStartsOn).endMs - now };
  }

  function runOf(collector: Collector): LastRun | null {
    const run = runs.get(collector);
    if (run !== undefined) {
      const { beganAt, made, isOver } = run;
      const all = isOver ? made : Math.max(made, callsOf(collector, extentNow()));
      return { sinceMs: clock.monotonic() - beganAt, calls: all, made };
    }
    const last = kept.get(collector) ?? null;
    return last === null ? null : { sinceMs: Math.max(0, clock.now() - last.at), calls: last.calls, made: last.calls };
  }

  function made(): Plan {
    const lasts = COLLECTORS.flatMap((collector) => {
      const run = runOf(collector);
      return run === null ? [] : [[collector, run] as const];
    });
    const input: PlanInput = {
      ...callsNow(),
      wishes: parts.wishes,
      limits: parts.limits,
      month: monthNow(),
      runs: Object.fromEntries(lasts),
      measured: Object.fromEntries(measured),
      paced: Object.fromEntries(paced),
      actions: office.actions(),
      others: office.others(),
      learned: office.learned(),
      reads: parts.reads,
    };
    const planned = plan(input);
    for (const collector of COLLECTORS) {
      if (planned[collector] !== null) paced.set(collector, planned[collector].pacedMs);
    }
    office.share(sharesOf(planned, roomOf(input), unseen()));
    showPlan(planned, parts.metrics);
    return planned;
  }

  /** Lists whose extent is unknown, except those whose runs keep failing: their first walk may never come. */
  function unseen(): ReadonlySet<Flow> {
    const isUnseen = (list: "nodes" | "sessions", pagesBefore: number) =>
      !seen.has(list) && pagesBefore === 0 && (failed.get(list) ?? 0) < UNSEEN_FAILURES_MAX;
    const lists = new Set<Flow>();
    if (isUnseen("nodes", before.nodePages)) lists.add("nodes");
    if (isUnseen("sessions", before.sessionPages)) lists.add("sessions");
    return lists;
  }

  function keep(key: string, value: object): void {
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
    renew() {
      current = made();
      return current;
    },
    begin(collector) {
      const run: Run = { beganAt: clock.monotonic(), made: 0, isOver: false };
      const expected = Math.ceil(callsOf(collector, callsNow()));
      runs.set(collector, run);
      keep(runFact(collector), { at: clock.now(), calls: expected } satisfies KeptRun);
      return clientOfRun(parts.client, run, {
        clock,
        budget: runBudget(expected, pollingLeft(parts.limits, monthNow(), 0)),
        plan: () => current[collector],
      });
    },
    end(collector, succeeded) {
      const run = runs.get(collector);
      if (run === undefined) return;
      run.isOver = true;
      const before = calls.get(collector) ?? run.made;
      calls.set(collector, before + (run.made - before) * RUN_CALLS_SMOOTHING);
      const { at, calls: expected } = keptRun(parts, collector) ?? { at: clock.now(), calls: 0 };
      if (run.made > expected) keep(runFact(collector), { at, calls: run.made } satisfies KeptRun);
      if (succeeded) measured.set(collector, clock.monotonic() - run.beganAt);
      failed.set(collector, succeeded ? 0 : (failed.get(collector) ?? 0) + 1);
    },
    settle(collector) {
      seen.add(collector);
      const extent = extentNow();
      const text = JSON.stringify(extent);
      if (facts.read(EXTENT) !== text) keep(EXTENT, extent);
    },
    firstWait(collector) {
      const planned = current[collector];
      const last = kept.get(collector) ?? null;
      if (planned?.boundBy !== "month" || last === null) return 0;
      // A clock that was set back must not wait for the moment it once showed.
      const since = Math.max(0, clock.now() - last.at);
      return Math.max(0, planned.intervalMs * RESTART_SHARE - since);
    },
  };
}

/** Pages of what is not walked whole yet: no fewer than the last process knew of. */
const larger = (now: Extent, before: Extent): Extent => ({
  nodes: Math.max(now.nodes, before.nodes),
  nodePages: Math.max(now.nodePages, before.nodePages),
  sessions: Math.max(now.sessions, before.sessions),
  sessionPages: Math.max(now.sessionPages, before.sessionPages),
});

/** What the process before this one left; a text of another version is none. */
function keptRun({ facts }: PlanningParts, collector: Collector): KeptRun | null {
  const { at, calls } = readFact(facts.read, runFact(collector)) as Partial<KeptRun>;
  return Number.isFinite(at) && Number.isFinite(calls) ? { at: at!, calls: calls! } : null;
}

/** The extent that a process has kept; all of it 0 where the text is none, or another version's. */
export function extentKept(read: (key: string) => string | null): Extent {
  const kept = readFact(read, EXTENT) as Partial<Extent>;
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
