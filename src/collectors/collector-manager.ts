import type { ApiClient } from "../api-client/client.ts";
import type { RateLimiter } from "../api-client/rate-limiter.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { Random } from "../base/random.ts";
import type { UsageScale } from "../inventory/usage-scale.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, Cron, FactStore, Log } from "../model/ports.ts";
import { COLLECTORS, type Collector, type Snapshot } from "../model/snapshot.ts";
import { callsInFlightMax } from "../rate-limit/concurrency.ts";
import type { Limits } from "../rate-limit/limits.ts";
import { pollingCallsPerWindow } from "../rate-limit/limits.ts";
import type { Plan } from "../scheduling/planner.ts";
import { CATEGORY_OF_COLLECTOR } from "../scheduling/polling-capacity.ts";
import { type CollectedState, createListBehaviours, networkSizeOf, storeFailedListed } from "./collected-state.ts";
import type { CollectorHealth, RunOutcome } from "./collector-health.ts";
import { runDetailCollector } from "./detail-collector.ts";
import { collectNodes, collectSessions, type ListCollectorDeps } from "./list-collectors.ts";
import { createPollingPlan } from "./polling-plan.ts";
import {
  type LastStart,
  requestedIntervalsOf,
  runOnSchedule,
  type Schedule,
  type ScheduleDeps,
  type Schedules,
} from "./schedule.ts";
import { collectHourly, collectStats } from "./statistics-collector.ts";

/** What the configuration says about collection. */
export interface CollectionSettings {
  readonly schedules: Schedules;
  readonly limits: Limits;
  readonly monthStartsOn: number;
  readonly pageLimit: number;
  readonly usageScale: UsageScale;
  /** Share of the nodes that a complete walk may miss. */
  readonly maxMissing: Share;
  /** Collectors whose data the policies read. */
  readonly reads: ReadonlySet<Collector>;
}

/** Dependencies of the collector manager. */
export interface CollectorManagerDeps {
  readonly settings: CollectionSettings;
  readonly collected: CollectedState;
  readonly client: ApiClient;
  readonly rateLimiter: RateLimiter;
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly cron: Cron;
  readonly random: Random;
  readonly metrics: DaemonMetrics;
  readonly log: Log;
  /** Called with every snapshot, at least every {@link PUBLISH_CHECK_MS}: samples expire even if nothing new arrives. */
  readonly onSnapshot: (snapshot: Snapshot, plan: Plan) => void;
  /** Replaces {@link PUBLISH_CHECK_MS} when days are simulated. */
  readonly lookMs?: DurationMs;
}

/** The running collectors. */
export interface CollectorManager {
  /** Stops all collectors and waits until their runs have ended. */
  stop(): Promise<void>;
  /** Requests a snapshot soon, for data that no collector brought. */
  markChanged(): void;
  /** Publishes a snapshot immediately. */
  publish(): void;
  plan(): Plan;
  collectorHealth(): Readonly<Record<Collector, CollectorHealth>>;
}

/** Detail reads arrive one by one and are published together, at most this often. */
const PUBLISH_INTERVAL_MS: DurationMs = SECOND_MS;
/** A snapshot is published this often even if nothing arrived. */
const PUBLISH_CHECK_MS: DurationMs = 5 * SECOND_MS;
/** The plan is updated this often, and after every run of a collector. */
const PLAN_INTERVAL_MS: DurationMs = 10 * SECOND_MS;
/** Starts the collectors. */
export function startCollectorManager(parts: CollectorManagerDeps): CollectorManager {
  const { settings, collected, client, clock } = parts;
  const timing: ScheduleDeps = parts;
  const stop = new AbortController();
  if (collected.listBehaviour.nodes.requestedLimit !== settings.pageLimit)
    collected.listBehaviour = createListBehaviours(settings.pageLimit);
  const { listBehaviour } = collected;
  const pollingPlan = createPollingPlan({
    ...parts,
    ...settings,
    history: collected.collectorHistory,
    requestedIntervals: requestedIntervalsOf(settings.schedules, timing),
    networkSize: () => networkSizeOf(collected),
  });
  const lookMs = parts.lookMs ?? PUBLISH_CHECK_MS;
  let isDirty = true;

  function publish(): void {
    isDirty = false;
    collected.sequence++;
    const snapshot: Snapshot = {
      sequence: collected.sequence,
      at: clock.monotonic(),
      fleet: collected.inventory.currentFleet(),
      sessions: collected.sessions.view(),
      stats: collected.stats,
      hourly: collected.hourly,
    };
    parts.onSnapshot(snapshot, pollingPlan.current());
  }

  /** Runs a collector once, reports the run, and updates the plan and the snapshot. */
  const job =
    (collector: Collector, run: (client: ApiClient, signal: AbortSignal) => Promise<RunOutcome>) =>
    async (signal: AbortSignal) => {
      const client = pollingPlan.beginRun(collector);
      const succeeded = await collected.reporters[collector].run(() => run(client, signal));
      pollingPlan.endRun(collector, succeeded);
      pollingPlan.refresh();
      if (!signal.aborted) publish();
      return succeeded;
    };

  const jobsOf = (collector: "nodes" | "sessions", own: ApiClient): ListCollectorDeps => ({
    ...parts,
    client: own,
    reporter: collected.reporters[collector],
    listBehaviour: listBehaviour[collector],
    inFlightMax: callsInFlightMax(settings.limits),
    spacingMs:
      settings.limits.categories[CATEGORY_OF_COLLECTOR[collector]].windowMs /
      pollingCallsPerWindow(settings.limits, CATEGORY_OF_COLLECTOR[collector]),
  });

  const jobs: Readonly<Record<Exclude<Collector, "details">, Parameters<typeof job>[1]>> = {
    async nodes(own, signal) {
      const lists = jobsOf("nodes", own);
      const outcome = await collectNodes(lists, collected.inventory, settings.maxMissing, signal);
      if (outcome.complete) pollingPlan.acceptRun("nodes");
      return outcome;
    },
    async sessions(own, signal) {
      const lists = jobsOf("sessions", own);
      const outcome = await collectSessions(lists, collected.sessions, signal);
      if (outcome.complete) pollingPlan.acceptRun("sessions");
      storeFailedListed(collected.sessions, parts.facts, parts.log);
      return outcome;
    },
    stats: (own, signal) =>
      collectStats(
        own,
        collected.reporters.stats,
        ({ value, at }) => {
          collected.stats = { value: collected.capTopLists(value), at };
        },
        signal,
      ),
    hourly: (own, signal) =>
      collectHourly(
        own,
        collected.reporters.hourly,
        (hours) => {
          collected.hourly = hours;
        },
        signal,
      ),
  };

  function start(collector: Collector): Promise<void> {
    const schedule = settings.schedules[collector];
    if (schedule === null) return Promise.resolve();
    if (collector === "details") return startDetails();
    const planned = (): Schedule => {
      const now = pollingPlan.current()[collector];
      if (now === null) return schedule;
      if (schedule.kind === "every") return { ...schedule, intervalMs: now.intervalMs };
      return now.slowdown > 1 ? { ...schedule, minIntervalMs: now.intervalMs } : schedule;
    };
    const jobSchedule = {
      schedule: planned,
      firstWait: () => pollingPlan.firstWait(collector),
      lastStart: collected.lastStarts.get(collector) ?? null,
      onStart: (lastStarts: LastStart) => void collected.lastStarts.set(collector, lastStarts),
    };
    return runOnSchedule(timing, jobSchedule, job(collector, jobs[collector]), stop.signal);
  }

  const startDetails = () =>
    runDetailCollector(
      {
        client,
        clock,
        reporter: collected.reporters.details,
        inventory: collected.inventory,
        log: parts.log,
        metrics: parts.metrics,
        inFlightMax: callsInFlightMax(settings.limits),
        plan: () => pollingPlan.current().details,
        onRead: () => {
          isDirty = true;
        },
      },
      stop.signal,
    );

  async function publishDetails(): Promise<void> {
    let publishedAt = clock.monotonic();
    let plannedAt = clock.monotonic();
    while (!stop.signal.aborted) {
      await clock.sleep(PUBLISH_INTERVAL_MS, stop.signal);
      if (stop.signal.aborted || (!isDirty && clock.monotonic() - publishedAt < lookMs)) continue;
      // Also when no collector runs: a new month changes the plan.
      if (clock.monotonic() - plannedAt >= PLAN_INTERVAL_MS) {
        pollingPlan.refresh();
        plannedAt = clock.monotonic();
      }
      publish();
      publishedAt = clock.monotonic();
    }
  }

  // After a reload, data collected before it is published immediately under the new settings.
  if (collected.sequence > 0) publish();
  const running = [...COLLECTORS.map(start), publishDetails()];
  return {
    async stop() {
      stop.abort();
      await Promise.all(running);
    },
    markChanged() {
      isDirty = true;
    },
    publish,
    plan: pollingPlan.current,
    collectorHealth: () =>
      Object.fromEntries(
        COLLECTORS.map((collector) => [collector, collected.reporters[collector].health()]),
      ) as unknown as Readonly<Record<Collector, CollectorHealth>>,
  };
}
