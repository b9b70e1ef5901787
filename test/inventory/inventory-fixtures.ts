import { byName } from "../../src/base/by-name.ts";
import { NumberColumn } from "../../src/base/number-column.ts";
import type { LookupResult } from "../../src/inventory/absence.ts";
import type { Inventory } from "../../src/inventory/inventory.ts";
import { TEXT_COLUMNS } from "../../src/inventory/node-columns.ts";
import type { WalkSummary } from "../../src/inventory/walk-completeness.ts";
import {
  DETAIL_NUMBER_NAMES,
  type DetailNumber,
  LISTED_NUMBER_NAMES,
  LISTED_TEXT_NAMES,
  type ListedNumber,
  type ListedText,
  type NodeDetail,
  type NodeRecord,
} from "../../src/model/node.ts";
import type { Fleet, TextColumn } from "../../src/model/snapshot.ts";

/** The fields of a list record, all of them missing. */
export const missingFields: Record<ListedText | ListedNumber, null> = byName(
  [...LISTED_TEXT_NAMES, ...LISTED_NUMBER_NAMES],
  () => null,
);

/** The columns of a fleet that the fields of records fill, by the text or number that they hold at each slot. */
export const fieldColumns = (
  slots: number,
  textAt: (name: TextColumn, slot: number) => string = () => "",
  numberAt: (name: ListedNumber | DetailNumber, slot: number) => number = () => Number.NaN,
) => ({
  ...byName(TEXT_COLUMNS, (name) => Array.from({ length: slots }, (_, slot) => textAt(name, slot))),
  ...byName([...LISTED_NUMBER_NAMES, ...DETAIL_NUMBER_NAMES], (name) =>
    NumberColumn.from(Array.from({ length: slots }, (_, slot) => numberAt(name, slot))),
  ),
});

export const record = (id: string, parts: Partial<NodeRecord> = {}): NodeRecord => ({
  ...missingFields,
  id,
  name: `name of ${id}`,
  status: "online",
  country: "DE",
  region: "eu",
  version: "1.0",
  lastSeenMs: 1_000,
  uptimeHours: 5,
  activeSessions: 2,
  bandwidthGb: 0.5,
  ...parts,
});

export const detail = (id: string, cpuUsage: number | null, parts: Partial<NodeDetail> = {}): NodeDetail => ({
  ...byName(DETAIL_NUMBER_NAMES, () => null),
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
  observedFrom: Number.NEGATIVE_INFINITY,
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
