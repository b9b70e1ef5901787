import { HOUR_MS } from "../../../src/base/duration.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** What a node was shown to be in may be so old when a timer fires on it. */
const SHOWN_MS = HOUR_MS / 2;

/** Why a timer that began to fire on a node had no cause; null: it had one, or it can't be told. */
export function firingLaw(
  policy: string,
  id: string,
  { service, serviceNow, rules, wasIllAt }: SimulationParts,
): string | null {
  const rule = rules.policies.find(({ name }) => name === policy);
  // Sessions that began before a cure go on to fail.
  if (rule === undefined || rule.when.includes("sessions.")) return null;
  const now = serviceNow();
  const node = findNode(service.world.fleet, id);
  if (node === null || node.failureMode !== "none" || node.isRegionDown) return null;
  const sinceMs = now - (wasIllAt.get(id) ?? service.world.startMs);
  return sinceMs <= SHOWN_MS
    ? null
    : `${policy} fires on ${id}, and nothing ails it for ${Math.round(sinceMs / 60_000)} min`;
}
