import type { RateLimiter } from "../api-client/rate-limiter.ts";
import { byName } from "../base/by-name.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { Random } from "../base/random.ts";
import type { Schedule } from "../config/schema/config.ts";
import type { UsageScale } from "../inventory/usage-scale.ts";
import type { Log } from "../model/ports.ts";
import { COLLECTORS, type Collector, type Snapshot } from "../model/snapshot.ts";
import type { Limits } from "../rate-limit/limits.ts";
import type { CollectorPlan, Plan } from "../scheduling/planner.ts";
import { createListBehaviors, networkSizeOf, recordFailedSessionsListed } from "./collected-state.ts";
import type { RunOutcome } from "./collector-health.ts";
import { runDetailCollector } from "./detail-collector.ts";
import { collectNodes, collectSessions, type ListCollectorDeps } from "./list-collectors.ts";
import { PollingPlan } from "./polling-plan.ts";
import {
  type LastStart,
  type PlannedSchedule,
  requestedIntervalsOf,
  runOnSchedule,
  type Schedules,
} from "./schedule.ts";
import { collectHourly, collectStats } from "./statistics-collectors.ts";

/** The settings of the collectors. */
export interface CollectionSettings {
  readonly schedules: Schedules;
  readonly limits: Limits;
  readonly monthStartsOn: number;
  readonly pageLimit: number;
  readonly usageScale: UsageScale;
  /** Share of the nodes that a complete walk may miss. */
  readonly maxMissing: Share;
  /** Share of the nodes that the list showed before that it must show for any of the others to count as gone. */
  readonly minInventory: Share;
  /** Collectors whose data the policies read. */
  readonly reads: ReadonlySet<Collector>;
}

/** Dependencies of the collector manager. */
interface CollectorManagerDeps extends ListCollectorDeps {
  readonly settings: CollectionSettings;
  readonly rateLimiter: RateLimiter;
  readonly random: Random;
  readonly log: Log;
  /** Replaces {@link PUBLISH_INTERVAL_MS} when days are simulated. */
  readonly publishIntervalMs?: DurationMs;
  /** Replaces {@link PUBLISH_CHECK_MS} when days are simulated. */
  readonly publishCheckMs?: DurationMs;
}

/** Receives snapshots, each with the plan under which it was collected. */
export type SnapshotListener = (snapshot: Snapshot, plan: Plan) => void;

/** The running collectors. */
export type CollectorManager = ReturnType<typeof startCollectorManager>;

/** Detail reads arrive one by one and are published together, at most this often. */
const PUBLISH_INTERVAL_MS: DurationMs = SECOND_MS;
/**
 * Publishing a snapshot compares and evaluates the whole fleet, so changes of a larger fleet are published less often:
 * the interval is a second longer for each of this many nodes, up to {@link PUBLISH_INTERVALS_MAX} seconds. The end of
 * a walk is published immediately.
 */
const NODES_PER_INTERVAL = 50_000;
const PUBLISH_INTERVALS_MAX = 5;
/** After this time a snapshot is published even if nothing arrived. */
const PUBLISH_CHECK_MS: DurationMs = 5 * SECOND_MS;
/** The plan is updated this often, and after every run of a collector. */
const PLAN_INTERVAL_MS: DurationMs = 10 * SECOND_MS;

/** After this many runs in a row that were answered 403, a collector runs less often. */
const FORBIDDEN_RUNS_MIN = 3;
/**
 * Maximum interval of such a collector. It runs often enough to recover soon, and to keep the alert about the API key
 * firing, which looks back 30 minutes.
 */
const FORBIDDEN_INTERVAL_MS_MAX: DurationMs = 20 * MINUTE_MS;

/** Starts the collectors. */
export function startCollectorManager(deps: CollectorManagerDeps) {
  const { settings, collected } = deps;
  const stop = new AbortController();
  if (collected.listBehavior.nodes.requestedLimit !== settings.pageLimit) {
    collected.listBehavior = createListBehaviors(settings.pageLimit);
  }
  const pollingPlan = new PollingPlan({
    ...deps,
    ...settings,
    history: collected.collectorHistory,
    facts: collected.facts,
    requestedIntervals: requestedIntervalsOf(settings.schedules, deps),
    networkSize: () => networkSizeOf(collected),
  });
  const publisher = createSnapshotPublisher(deps, pollingPlan);
  const running = [...startCollectors(deps, pollingPlan, publisher, stop.signal), publisher.run(stop.signal)];
  const { markChanged, latest, setListener } = publisher;
  return {
    /** Stops all collectors and waits until their runs have ended. */
    async stop(): Promise<void> {
      stop.abort();
      await Promise.all(running);
    },
    markChanged,
    latest,
    setListener,
    plan: (): Plan => pollingPlan.current(),
    collectorHealth: () => byName(COLLECTORS, (collector) => collected.reporters[collector].health()),
  };
}

type SnapshotPublisher = ReturnType<typeof createSnapshotPublisher>;

function createSnapshotPublisher(deps: CollectorManagerDeps, pollingPlan: PollingPlan) {
  const { collected, clock, publishIntervalMs = PUBLISH_INTERVAL_MS, publishCheckMs = PUBLISH_CHECK_MS } = deps;
  let isChanged = true;
  let publishedAt = clock.monotonic();
  let latest: Snapshot | null = null;
  let listener: SnapshotListener = () => {};

  function publish(): void {
    isChanged = false;
    publishedAt = clock.monotonic();
    collected.sequence++;
    latest = {
      sequence: collected.sequence,
      at: publishedAt,
      fleet: collected.inventory.currentFleet(),
      sessions: collected.sessions.view(),
      stats: collected.stats,
      hourly: collected.hourly,
    };
    listener(latest, pollingPlan.current());
  }

  return {
    publish,
    /** Returns the last snapshot, or null before the first. */
    latest: (): Snapshot | null => latest,
    /**
     * Replaces the listener. It immediately receives a snapshot if data was collected before, and then every new one.
     * There is one about every {@link PUBLISH_CHECK_MS} even if nothing new arrives, because samples expire.
     */
    setListener(next: SnapshotListener): void {
      listener = next;
      if (collected.sequence > 0) publish();
    },
    /** Requests that a snapshot be published soon, for example after the read of a single node. */
    markChanged(): void {
      isChanged = true;
    },
    /** Publishes changes, and regularly without changes, until `signal` aborts. */
    async run(signal: AbortSignal): Promise<void> {
      let plannedAt = clock.monotonic();
      while (!signal.aborted) {
        const intervals = 1 + Math.floor(collected.inventory.count() / NODES_PER_INTERVAL);
        await clock.sleep(publishIntervalMs * Math.min(PUBLISH_INTERVALS_MAX, intervals), signal);
        if (signal.aborted || (!isChanged && clock.monotonic() - publishedAt < publishCheckMs)) continue;
        // The plan may change even if no collector runs, for example when a new month begins.
        if (clock.monotonic() - plannedAt >= PLAN_INTERVAL_MS) {
          pollingPlan.refresh();
          plannedAt = clock.monotonic();
        }
        publish();
      }
    },
  };
}

/** The functions that run each collector once. There is none for details, which are read continuously. */
const COLLECT = { nodes: collectNodes, sessions: collectSessions, stats: collectStats, hourly: collectHourly } as const;

function startCollectors(
  deps: CollectorManagerDeps,
  pollingPlan: PollingPlan,
  publisher: SnapshotPublisher,
  signal: AbortSignal,
): Promise<void>[] {
  const { settings, collected } = deps;
  const isNodeListForbidden = () => collected.reporters.nodes.health().failure?.kind === "forbidden";

  function start(collector: Exclude<Collector, "details">, schedule: Schedule): Promise<void> {
    let forbiddenRuns = 0;
    const runSchedule = {
      schedule: () => plannedSchedule(schedule, pollingPlan.current()[collector]),
      minIntervalMs: () => forbiddenIntervalMs(forbiddenRuns),
      firstWait: () => pollingPlan.firstWait(collector),
      lastStart: collected.lastStarts.get(collector) ?? null,
      onRun: (lastStart: LastStart) => void collected.lastStarts.set(collector, lastStart),
    };
    const run = async () => {
      const client = pollingPlan.beginRun(collector);
      const succeeded = await collected.reporters[collector].run(async () => {
        const outcome = await COLLECT[collector]({ ...deps, client }, signal);
        if (outcome.complete && (collector === "nodes" || collector === "sessions"))
          pollingPlan.recordCompleteList(collector);
        recordFailedSessionsListed(collected);
        // If the nodes are forbidden too, the cause is not a scope that only this collector needs.
        forbiddenRuns = isForbidden(outcome) && !isNodeListForbidden() ? forbiddenRuns + 1 : 0;
        return outcome;
      });
      pollingPlan.endRun(collector, succeeded);
      pollingPlan.refresh();
      if (!signal.aborted) publisher.publish();
      return succeeded;
    };
    return runOnSchedule(deps, runSchedule, run, signal);
  }

  return COLLECTORS.flatMap((collector) => {
    const schedule = settings.schedules[collector];
    if (schedule === null) {
      collected.reporters[collector].reset();
      return [];
    }
    if (collector !== "details") return start(collector, schedule);
    const plan = () => pollingPlan.current().details;
    return runDetailCollector({ ...deps, plan, onRead: publisher.markChanged }, signal);
  });
}

/** Returns whether a run was answered 403 and read nothing. */
const isForbidden = ({ error, shownShare = 0 }: RunOutcome): boolean => error?.kind === "forbidden" && shownShare === 0;

/** Returns the minimum interval of a collector after this many runs in a row that lacked a scope. */
const forbiddenIntervalMs = (runs: number): DurationMs =>
  runs < FORBIDDEN_RUNS_MIN ? 0 : Math.min(FORBIDDEN_INTERVAL_MS_MAX, MINUTE_MS * 2 ** (runs - FORBIDDEN_RUNS_MIN));

/** Returns the schedule with the interval that the plan allows. */
function plannedSchedule(schedule: Schedule, planned: CollectorPlan | null): PlannedSchedule {
  if (planned === null) return schedule;
  if (schedule.kind === "every") return { ...schedule, intervalMs: planned.intervalMs };
  return planned.slowdown > 1 ? { ...schedule, minIntervalMs: planned.intervalMs } : schedule;
}
