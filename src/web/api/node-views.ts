import { NODE_STATUSES } from "../../model/node.ts";
import { SESSION_STATUSES } from "../../model/session.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { slotsInOrder } from "./fleet-columns.ts";
import { byName, isKnown, iso, seconds } from "./notation.ts";
import type { NodesQuery } from "./query.ts";
import type { StatusSnapshot } from "./status-views.ts";

/** `GET /api/v1/nodes`: a page of the fleet, in the order of ids. */
export function nodesView(statusSnapshot: StatusSnapshot, query: NodesQuery) {
  const fleet = statusSnapshot.snapshot?.fleet;
  const slots = fleet === undefined ? [] : matchingSlots(fleet, query);
  const begin = (query.page - 1) * query.limit;
  return {
    data: slots.slice(begin, begin + query.limit).map((slot) => listView(statusSnapshot, fleet!, slot)),
    pagination: { page: query.page, limit: query.limit, total: slots.length },
  };
}

/** `GET /api/v1/nodes/ID`, or null if there is no such node. */
export function nodeView(statusSnapshot: StatusSnapshot, id: string) {
  const fleet = statusSnapshot.snapshot?.fleet;
  const slot = id === "" ? -1 : (fleet?.ids.indexOf(id) ?? -1);
  if (fleet === undefined || slot < 0) return null;
  return {
    ...listView(statusSnapshot, fleet, slot),
    cpu_usage_ratio: numberOrNull(fleet.cpuUsage[slot]),
    memory_usage_ratio: numberOrNull(fleet.memoryUsage[slot]),
    disk_usage_ratio: numberOrNull(fleet.diskUsage[slot]),
    created_at: iso(fleet.createdAtMs[slot]),
    updated_at: iso(fleet.updatedAtMs[slot]),
    detail_age_seconds: ageSeconds(statusSnapshot, fleet.detailedAt[slot]),
    sessions: nodeSessions(statusSnapshot, id),
  };
}

function matchingSlots(fleet: Fleet, query: NodesQuery): number[] {
  const q = query.q?.toLowerCase() ?? null;
  const status = query.status === null ? null : NODE_STATUSES.indexOf(query.status);
  const slots: number[] = [];
  for (const slot of slotsInOrder(fleet.ids)) {
    if (status !== null && fleet.status[slot] !== status) continue;
    const place = fleet.locations[fleet.locationIndex[slot]!];
    if (query.country !== null && place?.country !== query.country) continue;
    if (query.region !== null && place?.region !== query.region) continue;
    const texts = [fleet.ids[slot]!, fleet.name[slot]!, fleet.ipAddress[slot]!];
    if (q === null || texts.some((text) => text.toLowerCase().includes(q))) slots.push(slot);
  }
  return slots;
}

function listView(statusSnapshot: StatusSnapshot, fleet: Fleet, slot: number) {
  const place = fleet.locations[fleet.locationIndex[slot]!];
  return {
    id: fleet.ids[slot],
    name: textOrNull(fleet.name[slot]),
    status: NODE_STATUSES[fleet.status[slot]!],
    country: textOrNull(place?.country),
    region: textOrNull(place?.region),
    ip_address: textOrNull(fleet.ipAddress[slot]),
    version: textOrNull(fleet.version[slot]),
    last_seen: iso(fleet.lastSeenMs[slot]),
    uptime_hours: numberOrNull(fleet.uptimeHours[slot]),
    active_sessions: numberOrNull(fleet.activeSessions[slot]),
    bandwidth_gb: numberOrNull(fleet.bandwidthGb[slot]),
    age_seconds: ageSeconds(statusSnapshot, fleet.listedAt[slot]),
  };
}

function nodeSessions({ snapshot }: StatusSnapshot, id: string): Record<string, number> | null {
  const nodes = snapshot?.sessions?.nodes;
  const slot = nodes?.ids.indexOf(id) ?? -1;
  if (nodes === undefined || slot < 0) return null;
  return byName(SESSION_STATUSES, (_, index) => nodes.counts[index]![slot]!);
}

const numberOrNull = (value: number | undefined): number | null => (isKnown(value) ? value : null);
const textOrNull = (value: string | undefined): string | null => value || null;
const ageSeconds = ({ monotonic }: StatusSnapshot, at: MonotonicMs | undefined): number | null =>
  isKnown(at) ? seconds(monotonic - at) : null;
