import { byName } from "../../base/by-name.ts";
import type { Steps } from "../../base/steps.ts";
import { equalsIgnoringCase } from "../../base/text.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import { SESSION_STATUSES } from "../../model/session.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { slotOfSessions, slotsById } from "../../policy/cel/field-readers.ts";
import { slotsInOrder } from "./fleet-columns.ts";
import { isKnown, iso, seconds } from "./json-values.ts";
import { type Query, ROWS_DEFAULT } from "./query.ts";
import { isComplete, type StatusSnapshot } from "./status-views.ts";
import { type Rows, withWarnings } from "./unknown-names.ts";

/** Nodes that are compared with a query in one step, which takes a fraction of a millisecond. */
const NODES_PER_STEP = 256;

/** A page of the fleet, in the order of ids. */
export interface NodesView extends Rows<ReturnType<typeof listView>> {
  /** Whether a walk of the list has completed. If not, only the nodes that were read so far are known. */
  readonly complete: boolean;
  readonly pagination: { readonly page: number; readonly limit: number; readonly total: number };
}

/** The steps of `GET /api/v1/nodes`. Pages are counted from 1. */
export function* nodesView(statusSnapshot: StatusSnapshot, query: Query): Steps<NodesView> {
  const [page, limit] = [Number(query.page ?? 1), Number(query.limit ?? ROWS_DEFAULT)];
  const fleet = statusSnapshot.snapshot?.fleet;
  const slots = fleet === undefined ? [] : yield* matchingSlots(fleet, query);
  const data: ReturnType<typeof listView>[] = [];
  for (const slot of slots.slice((page - 1) * limit, page * limit)) {
    data.push(listView(statusSnapshot, fleet!, slot));
    yield;
  }
  const complete = isComplete(statusSnapshot);
  const rows = withWarnings(data, { region: query.region, country: query.country }, fleet ?? null, []);
  return { ...rows, complete, pagination: { page, limit, total: slots.length } };
}

/** The part of `GET /api/v1/nodes/ID` that shows the fields of the node, or null if it is not in the fleet. */
export function nodeView(statusSnapshot: StatusSnapshot, id: string) {
  const fleet = statusSnapshot.snapshot?.fleet;
  const slot = fleet === undefined ? undefined : slotsById(fleet).get(id);
  if (fleet === undefined || slot === undefined) return null;
  return {
    ...listView(statusSnapshot, fleet, slot),
    cpu_usage_ratio: numberOrNull(fleet.cpuUsage.at(slot)),
    memory_usage_ratio: numberOrNull(fleet.memoryUsage.at(slot)),
    disk_usage_ratio: numberOrNull(fleet.diskUsage.at(slot)),
    created_at: iso(fleet.createdAtMs.at(slot)),
    updated_at: iso(fleet.updatedAtMs.at(slot)),
    detail_age_seconds: ageSeconds(statusSnapshot, fleet.detailedAt.at(slot)),
    sessions: nodeSessions(statusSnapshot, id),
  };
}

/** The columns that are searched for a text. */
const SEARCHED_COLUMNS = ["ids", "name", "ipAddress"] as const;

/**
 * The steps that find the slots of the nodes that match a query, in the order of their ids. `node` is the id or the name
 * of a node. `q` is a part of a searched column. The case of `q` and `country` is ignored.
 */
function* matchingSlots(fleet: Fleet, { node, status, country, region, q = "" }: Query): Steps<readonly number[]> {
  const text = q.toLowerCase();
  const slots: number[] = [];
  const ordered = yield* slotsInOrder(fleet.ids);
  for (const [index, slot] of ordered.entries()) {
    if (index % NODES_PER_STEP === 0) yield;
    if (node !== undefined && fleet.ids[slot] !== node && fleet.name[slot] !== node) continue;
    if (status !== undefined && NODE_STATUSES[fleet.status[slot]!] !== status) continue;
    const location = fleet.locations[fleet.locationIndex[slot]!];
    if (country !== undefined && !equalsIgnoringCase(location?.country ?? null, country)) continue;
    if (region !== undefined && location?.region !== region) continue;
    if (text === "" || SEARCHED_COLUMNS.some((name) => fleet[name][slot]!.toLowerCase().includes(text)))
      slots.push(slot);
  }
  return slots;
}

function listView(statusSnapshot: StatusSnapshot, fleet: Fleet, slot: number) {
  const location = fleet.locations[fleet.locationIndex[slot]!];
  return {
    id: fleet.ids[slot],
    name: textOrNull(fleet.name[slot]),
    status: NODE_STATUSES[fleet.status[slot]!],
    country: textOrNull(location?.country),
    region: textOrNull(location?.region),
    ip_address: textOrNull(fleet.ipAddress[slot]),
    version: textOrNull(fleet.version[slot]),
    last_seen: iso(fleet.lastSeenMs.at(slot)),
    uptime_hours: numberOrNull(fleet.uptimeHours.at(slot)),
    active_sessions: numberOrNull(fleet.activeSessions.at(slot)),
    bandwidth_gb: numberOrNull(fleet.bandwidthGb.at(slot)),
    age_seconds: ageSeconds(statusSnapshot, fleet.listedAt.at(slot)),
  };
}

function nodeSessions({ snapshot }: StatusSnapshot, id: string): Record<string, number> | null {
  const nodes = snapshot?.sessions?.nodes;
  const slot = nodes === undefined ? undefined : slotOfSessions(nodes, id);
  if (nodes === undefined || slot === undefined) return null;
  return byName(SESSION_STATUSES, (_, index) => nodes.counts[index]![slot]!);
}

const numberOrNull = (value: number): number | null => (isKnown(value) ? value : null);
const textOrNull = (value: string | undefined): string | null => value || null;
const ageSeconds = ({ monotonic }: StatusSnapshot, at: MonotonicMs): number | null => seconds(monotonic - at);
