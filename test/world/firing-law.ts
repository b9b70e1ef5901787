import { HOUR_MS } from "../../src/base/duration.ts";
import { findNode } from "../../src/simulator/fleet.ts";
import type { Stage } from "./stage.ts";

/** What a node was shown to be in may be so old when a timer fires on it. */
const SHOWN_MS = HOUR_MS / 2;

/** Why a timer that began to fire on a node had no cause; null: it had one, or it can't be told. */
export function firingLaw(policy: string, id: string, { service, serviceNow, rules, wasIllAt }: Stage): string | null {
  const rule = rules.policies.find(({ name }) => name === policy);
  // Sessions that began before a cure go on to fail.
  if (rule === undefined || rule.when.includes("sessions.")) return null;
  const now = serviceNow();
  const node = findNode(service.world.fleet, id);
  if (node === null || node.ailment !== "none" || node.dark) return null;
  const sinceMs = now - (wasIllAt.get(id) ?? service.world.startMs);
  return sinceMs <= SHOWN_MS
    ? null
    : `${policy} fires on ${id}, and nothing ails it for ${Math.round(sinceMs / 60_000)} min`;
}
