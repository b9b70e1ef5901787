import type { ApiClient } from "../api-client/client.ts";
import { createListBehaviour, type ListBehaviour } from "../api-client/pagination/pages.ts";
import type { RateLimiter } from "../api-client/rate-limiter.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { Random } from "../base/random.ts";
import { createInventory, type Inventory } from "../inventory/inventory.ts";
import { createSessionTotals, type SessionTotals } from "../inventory/sessions/session-totals.ts";
import type { UsageScale } from "../inventory/usage-scale.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { OnLabelsFolded } from "../model/label-caps.ts";
import type { Clock, Cron, FactStore, Log } from "../model/ports.ts";
import type { HourlyEntry, SessionStatistics } from "../model/session.ts";
import { COLLECTORS, type Collector, type Dated, type Snapshot } from "../model/snapshot.ts";
import { callsInFlightMax } from "../rate-limit/concurrency.ts";
import { pollingCallsPerWindow } from "../rate-limit/ledger.ts";
import type { Limits } from "../rate-limit/limits.ts";
import { CATEGORY_OF_COLLECTOR, type Plan } from "../scheduling/planner.ts";
import {
  type CollectorHealth,
  type CollectorReporter,
  createCollectorReporter,
  type RunOutcome,
} from "./collector-health.ts";
import { runDetailCollector } from "./detail-collector.ts";
import { collectNodes, collectSessions, type ListCollectorDeps } from "./list-collectors.ts";
import { type CollectorHistory, createCollectorHistory, createPollingPlan, type NetworkSize } from "./polling-plan.ts";
import {
  type LastStart,
  requestedIntervalsOf,
  runOnSchedule,
  type Schedule,
  type ScheduleDeps,
  type Schedules,
} from "./schedule.ts";
import { collectHourly, collectStats, createTopListCaps } from "./statistics-collector.ts";

/** What a configuration asks of the collectors. */
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

/** What was seen so far. It outlives a watch: a reload hands it to the next. */
export interface CollectedState {
  readonly inventory: Inventory;
  readonly sessions: SessionTotals;
  readonly reporters: Readonly<Record<Collector, CollectorReporter>>;
  readonly capTopLists: ReturnType<typeof createTopListCaps>;
  stats: Dated<SessionStatistics> | null;
  hourly: Dated<readonly HourlyEntry[]> | null;
  sequence: number;
  listBehaviour: { readonly nodes: ListBehaviour; readonly sessions: ListBehaviour };
  readonly collectorHistory: CollectorHistory;
  /** By collector when it ran last. */
  readonly lastStarts: Map<Collector, LastStart>;
}

/** What a watch stands on. */
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
  /** Told of every snapshot, and every {@link LOOK_MS} where none came, for samples grow old by themselves. */
  readonly onSnapshot: (snapshot: Snapshot, plan: Plan) => void;
  /** In place of {@link LOOK_MS}, where days are simulated; absent: that. */
  readonly lookMs?: DurationMs;
}

/** The collectors at work. */
export interface CollectorManager {
  /** Stops all collectors and waits for what is under way to end. */
  stop(): Promise<void>;
  /** Something else than a collector brought something: it is to be published soon. */
  markChanged(): void;
  /** Publishes a snapshot at once. */
  publish(): void;
  plan(): Plan;
  collectorHealth(): Readonly<Record<Collector, CollectorHealth>>;
}

/** Detail reads come one by one: they are published together, at most this often. */
const PUBLISH_INTERVAL_MS: DurationMs = SECOND_MS;
/** Published so often even where nothing came. */
const PUBLISH_CHECK_MS: DurationMs = 5 * SECOND_MS;
/** Planned anew so often where nothing but details comes, beside each time that a collector ends. */
const PLAN_INTERVAL_MS: DurationMs = 10 * SECOND_MS;
/** The fact that the list has once shown a failed session: until then failures are unknown, not zero. */
const FAILED_SESSIONS_LISTED_FACT = "sessions.failed_listed";

/** Nothing seen yet. */
export function createCollectedState(
  { usageScale, pageLimit }: Pick<CollectionSettings, "usageScale" | "pageLimit">,
  facts: FactStore,
  parts: { clock: Clock; log: Log; metrics: DaemonMetrics },
): CollectedState {
  const onFolded: OnLabelsFolded = (family, records) =>
    parts.metrics.inc("proxywarden_labels_folded_total", { family }, records);
  const inventory = createInventory(usageScale, onFolded);
  return {
    inventory,
    sessions: createSessionTotals(facts.read(FAILED_SESSIONS_LISTED_FACT) === "true", {
      isKnownNode: inventory.has,
      onFolded,
    }),
    capTopLists: createTopListCaps(onFolded),
    reporters: Object.fromEntries(
      COLLECTORS.map((collector) => [collector, createCollectorReporter(collector, parts)]),
    ) as unknown as CollectedState["reporters"],
    stats: null,
    hourly: null,
    sequence: 0,
    listBehaviour: createListBehaviours(pageLimit),
    collectorHistory: createCollectorHistory(),
    lastStarts: new Map(),
  };
}

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

  /** A job of a collector: kept in its account, then the plan and the snapshot follow what it brought. */
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
      storeFailedListed(parts);
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
      // Also where no collector runs: a new month must be noticed by itself.
      if (clock.monotonic() - plannedAt >= PLAN_INTERVAL_MS) {
        pollingPlan.refresh();
        plannedAt = clock.monotonic();
      }
      publish();
      publishedAt = clock.monotonic();
    }
  }

  // What an earlier watch saw is shown at once, as the new settings want it.
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

function networkSizeOf({ inventory, sessions, listBehaviour }: CollectedState): NetworkSize {
  const listed = sessions.view()?.counts.reduce((sum, count) => sum + count, 0) ?? 0;
  return {
    nodes: inventory.count(),
    nodePages: pageCount(inventory.count(), listBehaviour.nodes),
    sessions: listed,
    sessionPages: pageCount(listed, listBehaviour.sessions),
  };
}

const createListBehaviours = (limit: number) => ({
  nodes: createListBehaviour(limit),
  sessions: createListBehaviour(limit),
});

const pageCount = (records: number, listBehaviour: ListBehaviour): number =>
  Math.ceil(records / (listBehaviour.pageSize ?? listBehaviour.limit));

function storeFailedListed({ collected, facts, log }: CollectorManagerDeps): void {
  if (collected.sessions.view()?.failedListed !== true || facts.read(FAILED_SESSIONS_LISTED_FACT) === "true") return;
  try {
    facts.write(FAILED_SESSIONS_LISTED_FACT, "true");
  } catch (error) {
    log.error(
      { err: error },
      "the store refuses writes: after a restart failed sessions are unknown until one is seen",
    );
  }
}
