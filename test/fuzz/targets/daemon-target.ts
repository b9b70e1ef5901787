import { byName } from "../../../src/base/by-name.ts";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { NetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { COLLECTORS } from "../../../src/model/snapshot.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { createService } from "../../../src/simulator/http/service.ts";
import {
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";
import { bytesOf, jsonText, mutated } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";

interface Input {
  readonly seed: number;
  /** Share of answers to mutate. */
  readonly share: number;
}

const NODES = 8;
const RUN_MS = 6 * MINUTE_MS;
const STALE_AFTER_MS = 10 * MINUTE_MS;

/** The daemon with mutated answers of the service: collection, policies and rendering. */
export const createTarget = (): FuzzTarget<Input> => ({
  generate: (random) => ({ seed: Math.floor(random() * 2 ** 31), share: random() < 0.5 ? 0.2 : 1 }),
  async run({ seed, share }) {
    const random = seededRandom(seed);
    const clock = createVirtualClock(START_MS);
    const service = createService({ ...defaultScenario, seed, nodes: NODES, sessions: 20 }, START_MS);
    const daemon = await startVirtualDaemon({
      clock,
      service,
      seed,
      transport: mutatingTransport(createSimulatedTransport(service, clock, { latencyMs: 50 }), random, share),
      settings: {
        ...everyMinuteSettings,
        schedules: { ...everyMinuteSettings.schedules, details: { kind: "every", intervalMs: MINUTE_MS } },
      },
      config: remediationConfig(
        [
          rebootOffline({ forMs: MINUTE_MS }),
          rebootOffline({ name: "hot", when: "node.cpu_usage > 0.5 || sessions.failed_ratio > 0.1", forMs: 0 }),
        ],
        withoutLimits,
      ),
    });
    await clock.advance(RUN_MS);
    const { last } = daemon.snapshots;
    if (last !== null) {
      const input = {
        snapshot: last,
        now: clock.monotonic(),
        serviceNowMs: clock.now(),
        staleAfterMs: byName(COLLECTORS, () => STALE_AFTER_MS),
        options: { nodeLabels: ["name" as const], topCustomers: 5, deny: new Set<string>(), seriesMax: 10_000 },
      };
      for (const steps = new NetworkRenderer().refresh(input); ; ) if (steps.next().done === true) break;
    }
    for (const id of last?.fleet.ids ?? []) runAtOnce(daemon.controller!.view.explain(id));
    await stopVirtualDaemon(daemon);
    const error = daemon.log.lines.find(({ level, fields }) => level === "error" && fields.err instanceof Error);
    assert(error === undefined, `${error?.message}: ${(error?.fields.err as Error | undefined)?.stack}`);
  },
});

function mutatingTransport(transport: Transport, random: () => number, share: number): Transport {
  return {
    ...transport,
    async request(request, signal) {
      const answer = await transport.request(request, signal);
      if (!answer.ok || random() >= share) return answer;
      const text = Buffer.from(answer.value.body).toString();
      let body = text;
      try {
        body = jsonText(random, mutated(random, JSON.parse(text)));
      } catch {
        // An answer without a body is not JSON.
      }
      return { ok: true, value: { ...answer.value, body: bytesOf(body) } };
    },
  };
}
