import type { LookupResult } from "../../src/inventory/absence.ts";
import type { Inventory } from "../../src/inventory/inventory.ts";
import type { WalkSummary } from "../../src/inventory/walk-completeness.ts";
import type { NodeDetail, NodeRecord } from "../../src/model/node.ts";
import type { Fleet } from "../../src/model/snapshot.ts";

export const record = (id: string, parts: Partial<NodeRecord> = {}): NodeRecord => ({
  id,
  name: `name of ${id}`,
  status: "online",
  country: "DE",
  region: "eu",
  ipAddress: null,
  version: "1.0",
  lastSeenMs: 1_000,
  uptimeHours: 5,
  activeSessions: 2,
  bandwidthGb: 0.5,
  ...parts,
});

export const detail = (id: string, cpuUsage: number | null, parts: Partial<NodeDetail> = {}): NodeDetail => ({
  ...record(id),
  cpuUsage,
  memoryUsage: 0.5,
  diskUsage: 0.25,
  createdAtMs: 1,
  updatedAtMs: 2,
  ...parts,
});

export const idsOf = (fleet: Fleet): string[] => fleet.ids.filter((id) => id !== "").toSorted();

export const walkSummary = (seen: number, parts: Partial<WalkSummary> = {}): WalkSummary => ({
  end: "exact",
  total: seen,
  seen,
  rejected: 0,
  maxMissing: 0.02,
  ...parts,
});

/** Walks over these nodes, looks up all other nodes with the result `lookup` (null: no lookups), and ends the walk. */
export function walkOver(
  inventory: Inventory,
  ids: readonly string[],
  { lookup = "unknown", ...parts }: Partial<WalkSummary> & { readonly lookup?: LookupResult | null } = {},
  at = 0,
) {
  for (const id of ids) inventory.recordListed(record(id), at);
  if (lookup !== null) for (const id of inventory.nodesToLookUp(1_000)) inventory.recordLookup(id, lookup, at);
  return inventory.endWalk(walkSummary(ids.length, parts), at);
}
