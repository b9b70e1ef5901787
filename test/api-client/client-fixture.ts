import type { CallAttemptDeps } from "../../src/api-client/call-attempt.ts";
import { readStatsCall } from "../../src/api-client/endpoints.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { FaultKind, ServiceOptions } from "../../src/config/schema/scenario.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import type { LabelsOf } from "../../src/metrics/daemon-metrics.ts";
import type { Secret, Transport } from "../../src/model/ports.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { createService } from "../../src/simulator/http/service.ts";
import { createTestClient, createTestRateLimiter, START_MS } from "../harness/daemon/virtual-daemon.ts";
import { createSimulatedTransport } from "../harness/simulator/transport.ts";

/** A key that may read sessions, and nothing else. */
export const SESSIONS_KEY = "key-of-sessions";

/** Settings of the client and its service that a test changes. */
export interface ClientSetup {
  readonly fault?: FaultKind;
  readonly match?: string;
  readonly share?: number;
  readonly secret?: Secret;
  readonly service?: Partial<ServiceOptions>;
  /** Metrics of the client. Absent: each call is listed in `calls`. */
  readonly metrics?: CallAttemptDeps["metrics"] & {};
  readonly wrap?: (transport: Transport) => Transport;
}

/** A client over the simulator's handler, on virtual time. */
export function createClientSetup({ fault, match, share, secret, service: options, metrics, wrap }: ClientSetup = {}) {
  const clock = createVirtualClock(START_MS);
  const service = createService(
    {
      ...defaultScenario,
      nodes: 20,
      sessions: 50,
      keys: [...defaultScenario.keys, { key: SESSIONS_KEY, scopes: ["sessions:read"] }],
      service: { ...defaultScenario.service, ...options },
      faults:
        fault === undefined
          ? []
          : [{ afterMs: 0, forMs: 3_600_000, fault, ...(match && { match }), ...(share && { share }) }],
    },
    START_MS,
  );
  const calls: string[] = [];
  const simulated = createSimulatedTransport(service, clock, { latencyMs: 50 });
  const store = createMemoryStateStore();
  const random = seededRandom(1);
  const rateLimiter = createTestRateLimiter({ clock, random, calls: store.calls });
  const client = createTestClient({
    transport: wrap?.(simulated) ?? simulated,
    rateLimiter,
    clock,
    random,
    ...(secret && { secret }),
    metrics: metrics ?? callMetrics((endpoint, code) => void calls.push(`${endpoint} ${code}`)),
  });
  const get = async (call = readStatsCall) => {
    const answer = client.get(call, "walk", new AbortController().signal);
    await clock.advance(120_000);
    return answer;
  };
  return { clock, service, calls, get, store, rateLimiter, client };
}

/** Returns metrics that only report each call. `code`: the status code, or the kind of failure. */
export const callMetrics = (onCall: (endpoint: string, code: string) => void): CallAttemptDeps["metrics"] & {} => ({
  inc(name, labels) {
    const { endpoint, code } = labels as Partial<LabelsOf<"proxywarden_api_requests_total">>;
    if (name === "proxywarden_api_requests_total") onCall(endpoint!, code!);
  },
  set() {},
  observe() {},
});
