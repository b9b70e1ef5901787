import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** Maximum age of a list record when a timer starts firing on it. */
const LISTED_MS_MAX: DurationMs = HOUR_MS / 2;

/**
 * Returns a description if a timer started firing on a healthy node, or null if it had a failure or this is unknown.
 */
export function firingViolation(policy: string, id: string, parts: SimulationParts): string | null {
  const { service, serviceNow, config, lastFailingAt, machine, observations } = parts;
  const spec = config.policies.find(({ name }) => name === policy);
  // Sessions from before a recovery may fail after it.
  if (spec === undefined || spec.when.includes("sessions.")) return null;
  // Data from before a suspension looks fresh: actions are held until the next walk.
  if (observations.listedAt(id) <= machine.resumedAt()) return null;
  const now = serviceNow();
  const node = findNode(service.network.fleet, id);
  if (node === null || node.failureMode !== "none" || node.isRegionDown) return null;
  const sinceMs = now - (lastFailingAt.get(id) ?? service.network.startMs);
  // A detail counts for the policy's max_age: the node may have been failing when it was read.
  const withinMs = LISTED_MS_MAX + (spec.when.includes("usage") ? detailAgeMs(id, parts) : 0);
  return sinceMs <= withinMs
    ? null
    : `${policy} fires on ${id}, which has had no failure for ${Math.round(sinceMs / MINUTE_MS)} min`;
}

function detailAgeMs(id: string, { process: daemonProcess }: SimulationParts): DurationMs {
  const fleet = daemonProcess?.snapshot()?.fleet;
  const readAt = fleet?.detailedAt.at(fleet.ids.indexOf(id)) ?? Number.NaN;
  return Number.isNaN(readAt) ? 0 : daemonProcess!.monotonic() - readAt;
}
