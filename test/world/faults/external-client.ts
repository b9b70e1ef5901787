import { seededRandom } from "../../../src/base/random.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createSimulatedTransport } from "../../../src/simulator/http/transport.ts";
import type { Stage } from "../daemon/simulation-parts.ts";
import type { WorldEvent } from "./world-events.ts";

const NEVER_ABORTED = new AbortController().signal;
/** Calls come earlier or later than planned by up to this share. */
const JITTER = 0.5;

/** Lets another user of the API key call for a while. Returns at once. */
export function callFor(event: Extract<WorldEvent, { kind: "other_user" }>, stage: Stage): void {
  const { path, calls, everyMs, forMs } = event;
  const { clock, service, others } = stage;
  const transport = createSimulatedTransport(service, clock, { latencyMs: 60 });
  const random = seededRandom(clock.monotonic());
  const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
  const until = clock.monotonic() + forMs;
  const call = async (): Promise<void> => {
    others.calls++;
    others.calledAt = clock.monotonic();
    await transport.request({ method: "GET", path, headers }, NEVER_ABORTED);
  };
  const callOn = async (): Promise<void> => {
    while (clock.monotonic() < until) {
      for (let made = 0; made < calls; made++) void call();
      await clock.sleep(everyMs * (1 + JITTER * (2 * random() - 1)));
    }
  };
  void callOn();
}
