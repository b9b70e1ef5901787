import { createApiClient } from "../../src/api-client/client.ts";
import { RateLimiter } from "../../src/api-client/rate-limiter.ts";
import { ServiceClock } from "../../src/api-client/service-clock.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Share } from "../../src/base/percent.ts";
import { seededRandom } from "../../src/base/random.ts";
import { type CollectedState, createCollectedState } from "../../src/collectors/collected-state.ts";
import {
  type CollectorManager,
  type SnapshotListener,
  startCollectorManager,
} from "../../src/collectors/collector-manager.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { FactStore, Log, Transport } from "../../src/model/ports.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { thresholdsOf } from "../../src/policy/cel/thresholds.ts";
import { mustCompile } from "../../src/policy/policy.ts";
import type { Limits } from "../../src/rate-limit/limits.ts";
import type { Plan } from "../../src/scheduling/planner.ts";
import { createVirtualClock, type VirtualClock } from "../../src/simulator/clock.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import type { CustomLimits } from "../../src/simulator/http/rate-limits.ts";
import {
  createService,
  rateLimitedCount,
  replyCounts,
  type SimulatedService,
} from "../../src/simulator/http/service.ts";
import { createInterventions } from "../../test/harness/simulator/interventions.ts";
import { createSimulatedTransport } from "../../test/harness/simulator/transport.ts";
import { type Cell, PLAN_VARIANTS, pageSizeOf, REQUESTED_INTERVALS } from "./cell.ts";
import { createDetector } from "./detection.ts";
import { createListing } from "./listing.ts";
import { LATENCY_MS } from "./pollers.ts";
import { ageAt, ageMoments, type Result, toResult } from "./result.ts";
import { type Script, START_MS, THRESHOLD } from "./script.ts";
import { createSnapshotObserver } from "./snapshot-observer.ts";

/** Time before the start in which the whole fleet is read without limits. */
const WARM_UP_MS: DurationMs = 10 * MINUTE_MS;
/** More requests than the warm-up needs. */
const WARM_UP_REQUESTS = 1_000_000;
/** The conditions of the benchmark's policies, combined. */
const USAGES = ["cpu", "memory", "disk"].map((resource) => `node.${resource}_usage > ${THRESHOLD}`);
const WHEN = ['node.status == "offline"', ...USAGES].join(" || ");

/** Parts of the daemon that are kept between the warm-up and the run. */
interface Engine {
  readonly clock: VirtualClock;
  readonly collected: CollectedState;
  readonly metrics: ReturnType<typeof createDaemonMetrics>;
  readonly log: Log;
  /** Warnings and errors in the log; none are expected under plain conditions. */
  readonly warnings: readonly string[];
}

/** Runs the daemon from the rate limiter to the snapshots. A fault is found when a snapshot shows it. */
export async function runProxywarden(cell: Cell, script: Script): Promise<Result> {
  const { limits, contract } = PLAN_VARIANTS[cell.plan];
  const engine = await warmUp(cell, script);
  const { clock, collected } = engine;
  const { service, events } = createScriptedService(script, contract, clock);
  const detector = createDetector(script, cell.nodes, createListing(cell, script));
  const observer = createSnapshotObserver(script, detector, collected.inventory, clock);
  const { leadMs, endMs } = script.timetable;
  const moments = [...ageMoments(START_MS + leadMs, START_MS + endMs)];
  const ages: DurationMs[] = [];
  const errors: Share[] = [];
  const snapshots = { fresh: 0, all: 0 };
  const transport = createSimulatedTransport(service, clock, { latencyMs: LATENCY_MS, jitter: 0.5 });
  const collectors = start(engine, cell, limits, observer.observe(transport), (snapshot, plan) => {
    observer.update(snapshot, plan);
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
  await stop(collectors, clock);
  if (cell.conditions === "plain" && engine.warnings.length > 0)
    throw new Error(`unexpected warning: ${engine.warnings[0]}`);
  const rejected = rateLimitedCount(service);
  return toResult({
    latencies: detector.latencies(),
    calls: replyCounts(service).reduce((sum, { count }) => sum + count, 0) - rejected,
    rejected,
    spanMs: endMs,
    callsPerMonth: limits.plan.callsPerMonth,
    ages,
    inventory: { error: Math.max(...errors), fresh: snapshots.fresh / snapshots.all },
  });
}

/** Returns when a node's details were read, by node index, or -Infinity if the snapshot does not contain the node. */
function detailedAt({ idOf }: Script, { fleet }: Snapshot): (index: number) => number {
  const slots = new Map(fleet.ids.map((id, slot) => [id as string, slot]));
  return (index) => {
    const slot = slots.get(idOf(index));
    return slot === undefined ? Number.NEGATIVE_INFINITY : fleet.detailedAt.at(slot);
  };
}

/** Whether /metrics shows the nodes of the snapshot. */
function isFresh({ at, fleet }: Snapshot, { nodes }: Plan): boolean {
  return fleet.walkedAt !== null && at - fleet.walkedAt <= (nodes?.freshMs ?? 0);
}

/** Returns the number of missing and wrongly kept nodes of a snapshot as a share of the fleet. */
function inventoryError({ fleet }: Snapshot, { network }: SimulatedService): Share {
  const known = new Set(fleet.ids.filter((id) => id !== ""));
  const { nodes } = network.fleet;
  const common = nodes.filter(({ id }) => known.has(id)).length;
  return (nodes.length - common + known.size - common) / nodes.length;
}

/** Reads the whole fleet from a service without effective limits. */
async function warmUp(cell: Cell, script: Script): Promise<Engine> {
  const clock = createVirtualClock(START_MS - WARM_UP_MS);
  const warnings: string[] = [];
  const warn = (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: () => {}, info: () => {}, warn, error: warn };
  const metrics = createDaemonMetrics({ process: false });
  const facts: FactStore = { read: () => null, write: () => {} };
  const collected = createCollectedState({ usageScale: "ratio", pageLimit: pageSizeOf(cell) }, facts, {
    clock,
    log,
    metrics,
  });
  collected.inventory.details.setThresholds(thresholdsOf(mustCompile(WHEN)));
  const engine: Engine = { clock, collected, metrics, log, warnings };
  const allowance = { requests: WARM_UP_REQUESTS, burst: 2 * WARM_UP_REQUESTS, windowMs: MINUTE_MS };
  const limits: Limits = {
    categories: { node_management: allowance, session_monitoring: allowance },
    plan: { requestsPerMinute: null, concurrentRequests: null, callsPerMonth: null },
    reserve: 0,
  };
  const { service } = createScriptedService(script, WARM_UP_LIMITS, clock);
  const collectors = start(engine, cell, limits, createSimulatedTransport(service, clock, { latencyMs: 0 }), () => {});
  while (collected.inventory.count() < cell.nodes || !collected.inventory.hasDetail()) {
    if (clock.now() >= START_MS - MINUTE_MS) throw new Error("the fleet could not be read before the start");
    await clock.advance(SECOND_MS);
  }
  await stop(collectors, clock);
  await clock.advance(START_MS - clock.now());
  return engine;
}

const UNLIMITED = Number.POSITIVE_INFINITY;
const WARM_UP_LIMITS: CustomLimits = {
  plan: { requestsPerMinute: UNLIMITED, concurrentRequests: UNLIMITED, callsPerMonth: UNLIMITED },
  categories: { node_management: { limit: WARM_UP_REQUESTS, burst: 2 * WARM_UP_REQUESTS, windowMs: MINUTE_MS } },
};

/** Creates a service with the script's loads. The caller must execute the returned events at their times. */
function createScriptedService(script: Script, contract: CustomLimits, clock: VirtualClock) {
  const service = createService(script.scenario, START_MS, contract);
  const interventions = createInterventions(service, clock.now);
  for (const { id, load } of [...script.nearThreshold, ...script.faults])
    if (load !== null) interventions.setLoad(id, load);
  const restarts = script.restarts.map(({ id, at }) => ({ at, act: () => interventions.restart(id) }));
  const outages = script.faults
    .filter(({ load }) => load === null)
    .map(({ id, visibleAt, endsAt }) => ({
      at: visibleAt,
      act: () => interventions.startFailure(id, { failureMode: "outage", remedy: "time", recoverAt: endsAt }),
    }));
  return { service, events: [...restarts, ...outages].sort((one, other) => one.at - other.at) };
}

function start(
  { clock, collected, metrics, log }: Engine,
  cell: Cell,
  limits: Limits,
  transport: Transport,
  onSnapshot: SnapshotListener,
): CollectorManager {
  const random = seededRandom(cell.seed);
  const { calls } = createMemoryStateStore();
  const rateLimiter = new RateLimiter({ limits, monthStartsOn: 1, clock, random, calls, log, onWait: () => {} });
  const client = createApiClient({
    serviceClock: new ServiceClock(),
    transport,
    rateLimiter,
    clock,
    random,
    secret: { value: () => SIMULATION_KEY, refresh: () => ({ ok: true, value: false }) },
    timeoutMs: 10 * SECOND_MS,
    agent: "proxywarden/bench",
  });
  const collectors = startCollectorManager({
    settings: {
      maxMissing: 0.02,
      minInventory: 0.8,
      schedules: {
        nodes: { kind: "every", intervalMs: REQUESTED_INTERVALS.listMs },
        details: { kind: "every", intervalMs: REQUESTED_INTERVALS.detailMs },
        sessions: null,
        stats: null,
        hourly: null,
      },
      limits,
      monthStartsOn: 1,
      pageLimit: pageSizeOf(cell),
      usageScale: "ratio",
      reads: new Set(["nodes", "details"]),
    },
    collected,
    client,
    rateLimiter,
    clock,
    random,
    metrics,
    log,
  });
  collectors.setListener(onSnapshot);
  return collectors;
}

/** Stops the collectors once the calls in flight have been answered. */
async function stop(collectors: CollectorManager, clock: VirtualClock): Promise<void> {
  const stopped = collectors.stop();
  await clock.advance(MINUTE_MS / 2);
  await stopped;
}
