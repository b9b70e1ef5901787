import { createApiClient } from "../../src/api-client/client.ts";
import { createRateLimiter } from "../../src/api-client/rate-limiter.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Share } from "../../src/base/percent.ts";
import { seededRandom } from "../../src/base/random.ts";
import { type CollectedState, createCollectedState } from "../../src/collectors/collected-state.ts";
import {
  type CollectorManager,
  type CollectorManagerDeps,
  startCollectorManager,
} from "../../src/collectors/collector-manager.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite.ts";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { Log, Transport } from "../../src/model/ports.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { createCron } from "../../src/platform/cron.ts";
import { thresholdsOf } from "../../src/policy/cel/thresholds.ts";
import { mustCompile } from "../../src/policy/policy.ts";
import type { Limits } from "../../src/rate-limit/limits.ts";
import type { Plan } from "../../src/scheduling/planner.ts";
import { createVirtualClock, type VirtualClock } from "../../src/simulator/clock.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import type { CustomLimits } from "../../src/simulator/http/rate-limits.ts";
import { createService, type SimulatedService } from "../../src/simulator/http/service.ts";
import { createSimulatedTransport } from "../../src/simulator/http/transport.ts";
import { rateLimitedCount, replyCounts } from "../../src/simulator/inspection.ts";
import { createInterventions } from "../../src/simulator/intervention.ts";
import { type Cell, pageSizeOf, TERMS, WISHES } from "./cell.ts";
import { createFinder } from "./finding.ts";
import { createListing } from "./listing.ts";
import { LATENCY_MS } from "./pollers.ts";
import { type Script, START_MS, THRESHOLD } from "./script.ts";
import { ageAt, ageMoments, type Showing, showingOf } from "./showing.ts";
import { createWitness } from "./witness.ts";

/** Before the start everything is read once, without limits: whoever polls knows the fleet by then. */
const WARM_UP_MS: DurationMs = 10 * MINUTE_MS;
const PLENTY = 1_000_000;
/** What the policies of the bench say, as one. */
const USAGES = ["cpu", "memory", "disk"].map((resource) => `node.${resource}_usage > ${THRESHOLD}`);
const WHEN = ['node.status == "offline"', ...USAGES].join(" || ");

/** The engine's parts that live as long as the cell. */
interface Engine {
  readonly clock: VirtualClock;
  readonly sight: CollectedState;
  readonly metrics: ReturnType<typeof createDaemonMetrics>;
  readonly log: Log;
  /** What it warned of: nothing, where the conditions are plain. */
  readonly warnings: readonly string[];
}

/** Runs the engine as it is, from the permit office to the snapshots: a fault is found when a snapshot shows it. */
export async function runOurs(cell: Cell, script: Script): Promise<Showing> {
  const { limits, contract } = TERMS[cell.terms];
  const engine = await warmUp(cell, script);
  const { clock, sight } = engine;
  const { service, events } = stage(script, contract, clock);
  const finder = createFinder(script, cell.nodes, createListing(cell, script));
  const witness = createWitness(script, finder, sight.inventory, clock);
  const { leadMs, endMs } = script.timetable;
  const moments = [...ageMoments(START_MS + leadMs, START_MS + endMs)];
  const ages: DurationMs[] = [];
  const errors: Share[] = [];
  const snapshots = { fresh: 0, all: 0 };
  const transport = createSimulatedTransport(service, clock, { latencyMs: LATENCY_MS, jitter: 0.5 });
  const watch = start(engine, cell, limits, witness.over(transport), (snapshot, plan) => {
    witness.see(snapshot, plan);
    snapshots.all += 1;
    if (isFresh(snapshot, plan)) snapshots.fresh += 1;
    for (; moments.length > 0 && moments[0]! <= clock.now(); moments.shift()) {
      ages.push(ageAt(script, detailedAt(script, snapshot), snapshot.at));
      errors.push(inventoryError(snapshot, service));
    }
  });
  for (const { at, act } of events) {
    await clock.advance(at - clock.now());
    act();
  }
  await clock.advance(START_MS + endMs - clock.now());
  await stop(watch, clock);
  if (cell.conditions === "plain" && engine.warnings.length > 0)
    throw new Error(`the engine is not well: ${engine.warnings[0]}`);
  const refused = rateLimitedCount(service);
  return showingOf({
    latencies: finder.latencies(),
    calls: replyCounts(service).reduce((sum, { count }) => sum + count, 0) - refused,
    refused,
    spanMs: endMs,
    callsPerMonth: limits.plan.callsPerMonth,
    ages,
    inventory: { error: Math.max(...errors), fresh: snapshots.fresh / snapshots.all },
  });
}

/** When each node's details were read, by its index; -Infinity: the snapshot doesn't have the node. */
function detailedAt({ idOf }: Script, { fleet }: Snapshot): (index: number) => number {
  const slots = new Map(fleet.ids.map((id, slot) => [id as string, slot]));
  return (index) => {
    const slot = slots.get(idOf(index));
    return slot === undefined ? Number.NEGATIVE_INFINITY : fleet.detailedAt[slot]!;
  };
}

/** Whether metrics show the nodes of the snapshot. */
function isFresh({ at, fleet }: Snapshot, { nodes }: Plan): boolean {
  return fleet.walkedAt !== null && at - fleet.walkedAt <= (nodes?.freshMs ?? 0);
}

/** Nodes that the snapshot lacks, and those that it has though they left, as a share of the fleet. */
function inventoryError({ fleet }: Snapshot, { world }: SimulatedService): Share {
  const shown = new Set(fleet.ids.filter((id) => id !== ""));
  const there = world.fleet.nodes;
  const met = there.filter(({ id }) => shown.has(id)).length;
  return (there.length - met + shown.size - met) / there.length;
}

/** Reads the whole fleet as it is at the start, from a service that has no limits to speak of. */
async function warmUp(cell: Cell, script: Script): Promise<Engine> {
  const clock = createVirtualClock(START_MS - WARM_UP_MS);
  const warnings: string[] = [];
  const warn = (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: () => {}, info: () => {}, warn, error: warn };
  const metrics = createDaemonMetrics({ process: false });
  const { facts } = createMemoryStateStore();
  const sight = createCollectedState({ usageScale: "ratio", pageLimit: pageSizeOf(cell) }, facts, {
    clock,
    log,
    metrics,
  });
  sight.inventory.setThresholds(thresholdsOf(mustCompile(WHEN)));
  const engine: Engine = { clock, sight, metrics, log, warnings };
  const ours = { requests: PLENTY, burst: 2 * PLENTY, windowMs: MINUTE_MS };
  const limits: Limits = {
    categories: { node_management: ours, session_monitoring: ours },
    plan: { requestsPerMinute: null, concurrentRequests: null, callsPerMonth: null },
    reserve: 0,
  };
  const { service } = stage(script, PLENTIFUL, clock);
  const watch = start(engine, cell, limits, createSimulatedTransport(service, clock, { latencyMs: 0 }), () => {});
  while (sight.inventory.count() < cell.nodes || !sight.inventory.hasDetail()) {
    if (clock.now() >= START_MS - MINUTE_MS) throw new Error("the fleet could not be read before the start");
    await clock.advance(SECOND_MS);
  }
  await stop(watch, clock);
  await clock.advance(START_MS - clock.now());
  return engine;
}

const UNLIMITED = Number.POSITIVE_INFINITY;
const PLENTIFUL: CustomLimits = {
  plan: { requestsPerMinute: UNLIMITED, concurrentRequests: UNLIMITED, callsPerMonth: UNLIMITED },
  categories: { node_management: { limit: PLENTY, burst: 2 * PLENTY, windowMs: MINUTE_MS } },
};

/** A service in which the script is played, and what is to be done for that at given moments. */
function stage(script: Script, contract: CustomLimits, clock: VirtualClock) {
  const service = createService(script.scenario, START_MS, contract);
  const people = createInterventions(service, clock.now);
  for (const { id, strain } of [...script.lingering, ...script.faults]) if (strain !== null) people.setLoad(id, strain);
  const restarts = script.restarts.map(({ id, at }) => ({ at, act: () => people.restart(id) }));
  const outages = script.faults
    .filter(({ strain }) => strain === null)
    .map(({ id, visibleAt, endsAt }) => ({
      at: visibleAt,
      act: () => people.startFailure(id, { failureMode: "outage", remedy: "time", recoverAt: endsAt }),
    }));
  return { service, events: [...restarts, ...outages].sort((one, other) => one.at - other.at) };
}

function start(
  { clock, sight, metrics, log }: Engine,
  cell: Cell,
  limits: Limits,
  transport: Transport,
  onSnapshot: CollectorManagerDeps["onSnapshot"],
): CollectorManager {
  const random = seededRandom(cell.seed);
  const { calls, facts } = createMemoryStateStore();
  const office = createRateLimiter({ limits, monthStartsOn: 1, clock, random, calls, log, onWait: () => {} });
  const client = createApiClient({
    ...{ transport, rateLimiter: office, clock, random },
    secret: { value: () => SIMULATION_KEY, refresh: () => ({ ok: true, value: false }) },
    timeoutMs: 10 * SECOND_MS,
    observer: { onCall: () => {}, onLimitStated: () => {}, onRejected: () => {} },
    agent: "proxywarden/bench",
  });
  return startCollectorManager({
    settings: {
      maxMissing: 0.02,
      schedules: {
        nodes: { kind: "every", intervalMs: WISHES.listMs },
        details: { kind: "every", intervalMs: WISHES.detailMs },
        ...{ sessions: null, stats: null, hourly: null },
      },
      ...{
        limits,
        monthStartsOn: 1,
        pageLimit: pageSizeOf(cell),
        usageScale: "ratio",
        reads: new Set(["nodes", "details"]),
      },
    },
    ...{ collected: sight, client, rateLimiter: office, facts, clock, random, metrics, log, onSnapshot },
    cron: createCron(),
  });
}

/** Calls that are under way as it stops are still answered. */
async function stop(watch: CollectorManager, clock: VirtualClock): Promise<void> {
  const stopped = watch.stop();
  await clock.advance(MINUTE_MS / 2);
  await stopped;
}
