import type { DurationMs } from "../../../src/base/duration.ts";
import type { Transport, TransportRequest } from "../../../src/model/ports.ts";
import { findNode, reboot } from "../../../src/simulator/fleet/fleet.ts";
import { clockSkewAt } from "../../../src/simulator/http/faults.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** How reboots are executed for a time, as by a service that puts them into a queue, or sends them to its nodes again. */
export interface LateActions {
  readonly forMs: DurationMs;
  /** Time from the answer to the reboot; Infinity if it is never executed. */
  readonly delayMs: DurationMs;
  /** Whether it is executed immediately as well. */
  readonly isRepeated: boolean;
}

/**
 * Wraps the service so that it executes reboots as `current` returns, or as usual if that is null. A reboot that is only
 * executed later is answered with 202.
 */
export function createLateActions(
  { service, clock, serviceNow }: SimulationParts,
  inner: Transport,
  current: () => LateActions | null,
): Transport {
  function rebootLater(node: string, { body = "" }: TransportRequest, delayMs: DurationMs): void {
    if (delayMs === Number.POSITIVE_INFINITY) return;
    void clock.sleep(delayMs).then(() => {
      const at = serviceNow();
      const present = findNode(service.network.fleet, node);
      const { force = false } = JSON.parse(body === "" ? "{}" : body) as { force?: boolean };
      if (present !== null && present.status !== "rebooting") reboot(service.network.fleet, present, force, at);
    });
  }
  return {
    ...inner,
    async request(request, signal) {
      const late = current();
      const [, node] = /^\/v1\/nodes\/([^/?]+)\/reboot$/.exec(request.path) ?? [];
      if (late === null || node === undefined) return inner.request(request, signal);
      rebootLater(node, request, late.delayMs);
      if (late.isRepeated) return inner.request(request, signal);
      const now = serviceNow();
      const date = new Date(now + clockSkewAt(service.network.faultSchedule, now)).toUTCString();
      return { ok: true, value: { status: 202, headers: { date }, body: new Uint8Array() } };
    },
  };
}
