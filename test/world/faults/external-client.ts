import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";
import type { WorldEvent } from "./world-events.ts";

/** After this time without a response, the client gives up. */
const TIMEOUT_MS: DurationMs = 30 * SECOND_MS;
/** Intervals between calls vary by up to this share. */
const JITTER_SHARE = 0.5;

/** Starts the calls of another user of the API key and returns immediately. */
export function callForEvent(event: Extract<WorldEvent, { kind: "other_user" }>, parts: SimulationParts): void {
  const { path, calls, everyMs, forMs } = event;
  const { clock, service, externalUsers } = parts;
  const transport = createSimulatedTransport(service, clock, { latencyMs: 60 });
  const random = seededRandom(clock.monotonic());
  const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
  const until = clock.monotonic() + forMs;
  const call = async (): Promise<void> => {
    externalUsers.calls++;
    externalUsers.calledAt = clock.monotonic();
    const timeout = new AbortController();
    void clock.sleep(TIMEOUT_MS).then(() => timeout.abort());
    await transport.request({ method: "GET", path, headers }, timeout.signal);
  };
  const callOn = async (): Promise<void> => {
    while (clock.monotonic() < until) {
      for (let callsMade = 0; callsMade < calls; callsMade++) void call();
      await clock.sleep(everyMs * (1 + JITTER_SHARE * (2 * random() - 1)));
    }
  };
  void callOn();
}
