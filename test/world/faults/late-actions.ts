import { type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Transport, TransportRequest } from "../../../src/model/ports.ts";
import { findNode, quarantine, reboot } from "../../../src/simulator/fleet/fleet.ts";
import { clockSkewAt } from "../../../src/simulator/http/faults.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/**
 * How reboots and quarantines are executed for a time, as by a service that puts them into a queue, or sends them to its
 * nodes again.
 */
export interface LateActions {
  readonly forMs: DurationMs;
  /** Time from the answer to the action; Infinity if it is never executed. */
  readonly delayMs: DurationMs;
  /** Whether it is executed immediately as well. */
  readonly isRepeated: boolean;
}

interface ActionBody {
  readonly force?: boolean;
  readonly duration_minutes?: number;
}

/**
 * Wraps the service so that it executes reboots and quarantines as `current` returns, or as usual if that is null. An
 * action that is only executed later is answered with 202.
 */
export function createLateActions(
  { service, clock, serviceNow }: SimulationParts,
  inner: Transport,
  current: () => LateActions | null,
): Transport {
  function executeLater(node: string, kind: string, { body = "" }: TransportRequest, delayMs: DurationMs): void {
    if (delayMs === Number.POSITIVE_INFINITY) return;
    void clock.sleep(delayMs).then(() => {
      const at = serviceNow();
      const { fleet } = service.network;
      const present = findNode(fleet, node);
      const { force = false, duration_minutes = 0 } = JSON.parse(body === "" ? "{}" : body) as ActionBody;
      if (present === null || present.status === "rebooting") return;
      if (kind === "reboot") reboot(fleet, present, force, at);
      else quarantine(fleet, present, at + duration_minutes * MINUTE_MS, at);
    });
  }
  return {
    ...inner,
    async request(request, signal) {
      const late = current();
      const [, node, kind] = /^\/v1\/nodes\/([^/?]+)\/(reboot|quarantine)$/.exec(request.path) ?? [];
      if (late === null || node === undefined || kind === undefined) return inner.request(request, signal);
      executeLater(node, kind, request, late.delayMs);
      if (late.isRepeated) return inner.request(request, signal);
      const now = serviceNow();
      const date = new Date(now + clockSkewAt(service.network.faultSchedule, now)).toUTCString();
      return { ok: true, value: { status: 202, headers: { date }, body: new Uint8Array() } };
    },
  };
}
