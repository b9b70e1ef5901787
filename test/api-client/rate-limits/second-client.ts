import type { ApiClient } from "../../../src/api-client/client.ts";
import { type Call, listNodesCall, readStatsCall } from "../../../src/api-client/endpoints.ts";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { ServiceOptions } from "../../../src/config/schema/scenario.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import type { LimitScope } from "../../../src/rate-limit/external-usage/external-usage.ts";
import type { Category } from "../../../src/rate-limit/limits.ts";
import { createVirtualClock, type VirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createService } from "../../../src/simulator/http/service.ts";
import {
  createPlanLimits,
  createTestClient,
  createTestRateLimiter,
  START_MS,
} from "../../harness/daemon/virtual-daemon.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";
import { callMetrics } from "../client-fixture.ts";

/** Behavior of another client of the same key from `fromMinute` until `untilMinute`. */
export interface SecondClient {
  readonly category: Category;
  /** Number of concurrent calls. */
  readonly calls: number;
  /** Interval of the calls, which varies by `jitter`. */
  readonly everyMs: number;
  readonly jitter?: number;
  readonly fromMinute?: number;
  readonly untilMinute?: number;
}

/** An hour or more in which we always have another call to make, and another client uses our key. */
export interface SharedHours {
  readonly service: Pick<ServiceOptions, "limiter" | "rateLimitHeaders" | "plan">;
  readonly minutes: number;
  readonly secondClients: readonly SecondClient[];
  readonly categories?: readonly Category[];
}

/** Results of the run. */
export interface SharedReport {
  /** Our calls by minute. */
  readonly ownCalls: readonly number[];
  readonly externalCalls: number;
  /** Minutes in which one side was refused, by side. */
  readonly rejected: { readonly ownPerMinute: readonly number[]; readonly externalPerMinute: readonly number[] };
  /** External calls that the rate limiter reported. */
  readonly reported: Readonly<Record<LimitScope, number>>;
  /** Calls of the month that the store holds. */
  readonly monthCalls: number;
}

/** Calls that cost the simulator little. */
const CALLS: Readonly<Record<Category, Call>> = {
  node_management: listNodesCall({ page: 1, limit: 1 }),
  session_monitoring: readStatsCall,
};

const neverAborts = new AbortController().signal;

/** Number of loops that make our calls without a pause, in each category. */
const LOOPS = 4;

/** Runs the real client and rate limiter against the simulator on virtual time. */
export async function runSharedHours({
  service: choice,
  minutes,
  secondClients,
  ...rest
}: SharedHours): Promise<SharedReport> {
  const clock = createVirtualClock(START_MS);
  const service = createService(
    { ...defaultScenario, nodes: 1, sessions: 0, service: { ...defaultScenario.service, ...choice } },
    START_MS,
  );
  const transport = createSimulatedTransport(service, clock, { latencyMs: 60, jitter: 0.5 });
  const ownCalls = new Array<number>(minutes).fill(0);
  const rejected = { ownPerMinute: [] as number[], externalPerMinute: [] as number[] };
  const reported = { node_management: 0, session_monitoring: 0, plan: 0 };
  const minute = () => Math.floor(clock.monotonic() / MINUTE_MS);
  const { calls } = createMemoryStateStore();
  const random = seededRandom(1);
  const rateLimiter = createTestRateLimiter({
    clock,
    calls,
    random,
    limits: createPlanLimits(choice.plan),
    onExternalCalls: (scope, learned) => {
      reported[scope] += learned;
    },
  });
  const client = createTestClient({
    clock,
    transport,
    rateLimiter,
    random,
    metrics: callMetrics((_, code) => {
      ownCalls[minute()]!++;
      if (code === "429") rejected.ownPerMinute.push(minute());
    }),
  });
  const stop = new AbortController();
  const loops = (rest.categories ?? ["node_management"]).flatMap((category) =>
    Array.from({ length: LOOPS }, () => callRepeatedly(client, CALLS[category], stop.signal)),
  );
  let externalCalls = 0;
  const callOnce = async (category: Category): Promise<void> => {
    externalCalls++;
    const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
    const sent = await transport.request({ method: "GET", path: CALLS[category].path, headers }, neverAborts);
    if (sent.ok && sent.value.status === 429) rejected.externalPerMinute.push(minute());
  };
  const others = secondClients.map((second, index) =>
    callOnInterval(second, { clock, random: seededRandom(index + 2), signal: stop.signal }, callOnce),
  );
  await clock.advance(minutes * MINUTE_MS - 1);
  stop.abort();
  const monthCalls = calls.since("2026-03-01");
  await Promise.all([...loops, ...others, clock.advance(MINUTE_MS)]);
  return { ownCalls, externalCalls, rejected, reported, monthCalls };
}

/** Makes the next call as soon as the previous one has ended. */
async function callRepeatedly(client: ApiClient, call: Call, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await client.get(call, "detail", signal);
}

/** Makes calls at intervals, without waiting for the responses. */
async function callOnInterval(
  { category, calls, everyMs, jitter = 0, fromMinute = 0, untilMinute = Number.POSITIVE_INFINITY }: SecondClient,
  { clock, random, signal }: { clock: VirtualClock; random: () => number; signal: AbortSignal },
  callOnce: (category: Category) => Promise<void>,
): Promise<void> {
  const inFlight: Promise<void>[] = [];
  await clock.sleep(fromMinute * MINUTE_MS + everyMs * random(), signal);
  while (!signal.aborted && clock.monotonic() < untilMinute * MINUTE_MS) {
    for (let call = 0; call < calls; call++) inFlight.push(callOnce(category));
    await clock.sleep(everyMs * (1 + jitter * (2 * random() - 1)), signal);
  }
  await Promise.all(inFlight);
}
