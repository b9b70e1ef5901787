import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { Random } from "../base/random.ts";
import { inFlightMax } from "../rate-limit/concurrency.ts";
import { spendable } from "../rate-limit/ledger.ts";
import type { Limits } from "../rate-limit/limits.ts";
import { CATEGORY_OF, type Plan } from "../scheduling/planner.ts";
import type { OnFolded } from "../model/label-caps.ts";
import type { WardenMetrics } from "../metrics/daemon-metrics.ts";
import type { Bell, Clock, FactStore, Log } from "../model/ports.ts";
import type { HourlyEntry, SessionStatistics } from "../model/session.ts";
import { COLLECTORS, type Collector, type Dated, type Snapshot } from "../model/snapshot.ts";
import type { ServiceClient } from "../api-client/client.ts";
import { newPageHabits, type PageHabits } from "../api-client/pagination/pages.ts";
import type { PermitOffice } from "../api-client/rate-limiter.ts";
import { type Account, type CollectorState, createAccount, type Outcome } from "./collector-health.ts";
import { readDetails } from "./detail-collector.ts";
import { createInventory, type Inventory } from "../inventory/inventory.ts";
import { collectNodes, collectSessions, type ListParts } from "./list-collectors.ts";
import { createPlanning, createPlanningMemory, type Extent, type PlanningMemory } from "./polling-plan.ts";
import { type Cadence, type Cadences, type LastBegun, repeat, type Timing, wishesOf } from "./schedule.ts";
import { createSessionFold, type SessionFold } from "../inventory/sessions/session-totals.ts";
import { collectHourly, collectStats, createTopLists } from "./statistics-collector.ts";
import type { UsageScale } from "../inventory/usage-scale.ts";

/** What a configuration asks of the collectors. */
export interface WatchSettings {
  readonly cadences: Cadences;
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
export interface Sight {
  readonly inventory: Inventory;
  readonly sessions: SessionFold;
  readonly accounts: Readonly<Record<Collector, Account>>;
  readonly capTopLists: ReturnType<typeof createTopLists>;
  stats: Dated<SessionStatistics> | null;
  hourly: Dated<readonly HourlyEntry[]> | null;
  sequence: number;
  habits: { readonly nodes: PageHabits; readonly sessions: PageHabits };
  readonly planning: PlanningMemory;
  /** By collector when it ran last. */
  readonly begun: Map<Collector, LastBegun>;
}

/** What a watch stands on. */
export interface WatchParts {
  readonly settings: WatchSettings;
  readonly sight: Sight;
  readonly client: ServiceClient;
  readonly office: PermitOffice;
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly bell: Bell;
  readonly random: Random;
  readonly metrics: WardenMetrics;
  readonly log: Log;
  /** Told of every snapshot, and every {@link LOOK_MS} where none came, for samples grow old by themselves. */
  readonly onSnapshot: (snapshot: Snapshot, plan: Plan) => void;
  /** In place of {@link LOOK_MS}, where days are simulated; absent: that. */
  readonly lookMs?: DurationMs;
}

/** The collectors at work. */
export interface Watch {
  /** Stops all collectors and waits for what is under way to end. */
  stop(): Promise<void>;
  /** Something else than a collector brought something: it is to be published soon. */
  touch(): void;
  /** Publishes a snapshot at once. */
  publish(): void;
  plan(): Plan;
  collectors(): Readonly<Record<Collector, CollectorState>>;
}

/** Detail reads come one by one: they are published together, at most this often. */
const PUBLISH_MS: DurationMs = SECOND_MS;
/** Published so often even where nothing came. */
const LOOK_MS: DurationMs = 5 * SECOND_MS;
/** Planned anew so often where nothing but details comes, beside each time that a collector ends. */
const PLAN_MS: DurationMs = 10 * SECOND_MS;
/** The fact that the list has once shown a failed session: until then failures are unknown, not zero. */
const FAILED_LISTED = "sessions.failed_listed";

/** Nothing seen yet. */
export function createSight(
  { usageScale, pageLimit }: Pick<WatchSettings, "usageScale" | "pageLimit">,
  facts: FactStore,
  parts: { clock: Clock; log: Log; metrics: WardenMetrics },
): Sight {
  const onFolded: OnFolded = (family, records) =>
    parts.metrics.inc("proxywarden_labels_folded_total", { family }, records);
  const inventory = createInventory(usageScale, onFolded);
  return {
    inventory,
    sessions: createSessionFold(facts.read(FAILED_LISTED) === "true", { isKnownNode: inventory.has, onFolded }),
    capTopLists: createTopLists(onFolded),
    accounts: Object.fromEntries(
      COLLECTORS.map((collector) => [collector, createAccount(collector, parts)]),
    ) as unknown as Sight["accounts"],
    stats: null,
    hourly: null,
    sequence: 0,
    habits: newHabits(pageLimit),
    planning: createPlanningMemory(),
    begun: new Map(),
  };
}

/** Starts the collectors. */
export function startWatch(parts: WatchParts): Watch {
  const { settings, sight, client, clock } = parts;
  const timing: Timing = parts;
  const stop = new AbortController();
  if (sight.habits.nodes.wish !== settings.pageLimit) sight.habits = newHabits(settings.pageLimit);
  const { habits } = sight;
  const planning = createPlanning({
    ...parts,
    ...settings,
    memory: sight.planning,
    wishes: wishesOf(settings.cadences, timing),
    extent: () => extentOf(sight),
  });
  const lookMs = parts.lookMs ?? LOOK_MS;
  let isDirty = true;

  function publish(): void {
    isDirty = false;
    sight.sequence++;
    const snapshot: Snapshot = {
      sequence: sight.sequence,
      at: clock.monotonic(),
      fleet: sight.inventory.fleet(),
      sessions: sight.sessions.view(),
      stats: sight.stats,
      hourly: sight.hourly,
    };
    parts.onSnapshot(snapshot, planning.current());
  }

  /** A job of a collector: kept in its account, then the plan and the snapshot follow what it brought. */
  const job =
    (collector: Collector, run: (client: ServiceClient, signal: AbortSignal) => Promise<Outcome>) =>
    async (signal: AbortSignal) => {
      const client = planning.begin(collector);
      const succeeded = await sight.accounts[collector].run(() => run(client, signal));
      planning.end(collector, succeeded);
      planning.renew();
      if (!signal.aborted) publish();
      return succeeded;
    };

  const listsOf = (collector: "nodes" | "sessions", own: ServiceClient): ListParts => ({
    ...parts,
    client: own,
    account: sight.accounts[collector],
    habits: habits[collector],
    inFlightMax: inFlightMax(settings.limits),
    spacingMs:
      settings.limits.categories[CATEGORY_OF[collector]].windowMs / spendable(settings.limits, CATEGORY_OF[collector]),
  });

  const jobs: Readonly<Record<Exclude<Collector, "details">, Parameters<typeof job>[1]>> = {
    async nodes(own, signal) {
      const lists = listsOf("nodes", own);
      const outcome = await collectNodes(lists, sight.inventory, settings.maxMissing, signal);
      if (outcome.complete) planning.settle("nodes");
      return outcome;
    },
    async sessions(own, signal) {
      const lists = listsOf("sessions", own);
      const outcome = await collectSessions(lists, sight.sessions, signal);
      if (outcome.complete) planning.settle("sessions");
      rememberFailedListed(parts);
      return outcome;
    },
    stats: (own, signal) =>
      collectStats(
        own,
        sight.accounts.stats,
        ({ value, at }) => {
          sight.stats = { value: sight.capTopLists(value), at };
        },
        signal,
      ),
    hourly: (own, signal) =>
      collectHourly(
        own,
        sight.accounts.hourly,
        (hours) => {
          sight.hourly = hours;
        },
        signal,
      ),
  };

  function start(collector: Collector): Promise<void> {
    const cadence = settings.cadences[collector];
    if (cadence === null) return Promise.resolve();
    if (collector === "details") return startDetails();
    const planned = (): Cadence => {
      const now = planning.current()[collector];
      if (now === null) return cadence;
      if (cadence.kind === "every") return { ...cadence, intervalMs: now.intervalMs };
      return now.stretch > 1 ? { ...cadence, leastMs: now.intervalMs } : cadence;
    };
    const rhythm = {
      cadence: planned,
      firstWait: () => planning.firstWait(collector),
      last: sight.begun.get(collector) ?? null,
      onRun: (begun: LastBegun) => void sight.begun.set(collector, begun),
    };
    return repeat(timing, rhythm, job(collector, jobs[collector]), stop.signal);
  }

  const startDetails = () =>
    readDetails(
      {
        client,
        clock,
        account: sight.accounts.details,
        inventory: sight.inventory,
        log: parts.log,
        metrics: parts.metrics,
        inFlightMax: inFlightMax(settings.limits),
        plan: () => planning.current().details,
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
      await clock.sleep(PUBLISH_MS, stop.signal);
      if (stop.signal.aborted || (!isDirty && clock.monotonic() - publishedAt < lookMs)) continue;
      // Also where no collector runs: a new month must be noticed by itself.
      if (clock.monotonic() - plannedAt >= PLAN_MS) {
        planning.renew();
        plannedAt = clock.monotonic();
      }
      publish();
      publishedAt = clock.monotonic();
    }
  }

  // What an earlier watch saw is shown at once, as the new settings want it.
  if (sight.sequence > 0) publish();
  const running = [...COLLECTORS.map(start), publishDetails()];
  return {
    async stop() {
      stop.abort();
      await Promise.all(running);
    },
    touch() {
      isDirty = true;
    },
    publish,
    plan: planning.current,
    collectors: () =>
      Object.fromEntries(
        COLLECTORS.map((collector) => [collector, sight.accounts[collector].state()]),
      ) as unknown as Readonly<Record<Collector, CollectorState>>,
  };
}

function extentOf({ inventory, sessions, habits }: Sight): Extent {
  const listed = sessions.view()?.counts.reduce((sum, count) => sum + count, 0) ?? 0;
  return {
    nodes: inventory.count(),
    nodePages: pagesOf(inventory.count(), habits.nodes),
    sessions: listed,
    sessionPages: pagesOf(listed, habits.sessions),
  };
}

const newHabits = (limit: number) => ({ nodes: newPageHabits(limit), sessions: newPageHabits(limit) });

const pagesOf = (records: number, habits: PageHabits): number => Math.ceil(records / (habits.size ?? habits.limit));

function rememberFailedListed({ sight, facts, log }: WatchParts): void {
  if (sight.sessions.view()?.failedListed !== true || facts.read(FAILED_LISTED) === "true") return;
  try {
    facts.write(FAILED_LISTED, "true");
  } catch (error) {
    log.error(
      { err: error },
      "the store refuses writes: after a restart failed sessions are unknown until one is seen",
    );
  }
}
