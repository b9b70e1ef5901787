import { type DurationMs, HOUR_MS } from "../../../src/base/duration.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** Maximum age of a list record when a timer fires on it. */
const LISTED_MS_MAX: DurationMs = HOUR_MS / 2;

/** Why a timer that began to fire on a node had no cause; null: it had one, or it can't be told. */
export function firingLaw(policy: string, id: string, parts: SimulationParts): string | null {
  const { service, serviceNow, rules, wasIllAt } = parts;
  const rule = rules.policies.find(({ name }) => name === policy);
  // Sessions that began before a cure go on to fail.
  if (rule === undefined || rule.when.includes("sessions.")) return null;
  const now = serviceNow();
  const node = findNode(service.world.fleet, id);
  if (node === null || node.failureMode !== "none" || node.isRegionDown) return null;
  const sinceMs = now - (wasIllAt.get(id) ?? service.world.startMs);
  // A detail counts for as long as the policy's max_age: the node was failing when it was read.
  const shownMs = LISTED_MS_MAX + (rule.when.includes("usage") ? detailAgeMs(id, parts) : 0);
  return sinceMs <= shownMs
    ? null
    : `${policy} fires on ${id}, and nothing ails it for ${Math.round(sinceMs / 60_000)} min`;
}

function detailAgeMs(id: string, { process: daemonProcess, clock, bornAt }: SimulationParts): DurationMs {
  const fleet = daemonProcess?.snapshot()?.fleet;
  const readAt = fleet?.detailedAt[fleet.ids.indexOf(id)] ?? Number.NaN;
  return Number.isNaN(readAt) ? 0 : clock.monotonic() - bornAt - readAt;
}
