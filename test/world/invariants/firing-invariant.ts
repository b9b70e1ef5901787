import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** The longest time between a failure and a timer that starts firing on it. */
const FIRING_DELAY_MS_MAX = HOUR_MS / 2;

/** Returns why a timer started firing on a healthy node; null: the node had a failure, or this cannot be determined. */
export function firingViolation(
  policy: string,
  id: string,
  { service, serviceNow, rules, lastFailingAt }: SimulationParts,
): string | null {
  const rule = rules.policies.find(({ name }) => name === policy);
  // Sessions from before a recovery may fail after it.
  if (rule === undefined || rule.when.includes("sessions.")) return null;
  const now = serviceNow();
  const node = findNode(service.world.fleet, id);
  if (node === null || node.failureMode !== "none" || node.isRegionDown) return null;
  const sinceMs = now - (lastFailingAt.get(id) ?? service.world.startMs);
  return sinceMs <= FIRING_DELAY_MS_MAX
    ? null
    : `${policy} fires on ${id}, which has had no failure for ${Math.round(sinceMs / MINUTE_MS)} min`;
}
