import type { NodeRecord } from "../../src/model/node.ts";
import { DetailPriority } from "../../src/scheduling/detail-priority.ts";
import type { UsageReading } from "../../src/scheduling/usage-trend.ts";
import { missingFields } from "../inventory/inventory-fixtures.ts";

/** A node as a list shows it, but for what a test says otherwise. */
export const listRecord = (overrides: Partial<NodeRecord>): NodeRecord => ({
  ...missingFields,
  id: "node_0",
  status: "online",
  country: "DE",
  region: "eu",
  version: "1.0",
  lastSeenMs: 0,
  uptimeHours: 100,
  activeSessions: 40,
  bandwidthGb: 500,
  ...overrides,
});

/** A read takes a millisecond, so that a round of n nodes takes n. */
export const usage = (diskUsage: number): UsageReading => ({ cpuUsage: 0.2, memoryUsage: 0.4, diskUsage });

/** A priority over some nodes that were all read once, and whose records were seen often enough to be known. */
export function prioritiesAfterWalk(nodes: number): { priority: DetailPriority; now: number } {
  const priority = new DetailPriority();
  priority.setThresholds([{ usage: "diskUsage", value: 0.9, side: "above" }]);
  for (let slot = 0; slot < nodes; slot++) priority.addNode(slot);
  for (let now = 0; now < nodes; now++) priority.recordRead(priority.takeNext(now, nodes)!.slot, usage(0.5), now);
  for (let slot = 0; slot < nodes; slot++) priority.recordListed(slot, listRecord({}), 0);
  return { priority, now: nodes };
}

/** Whole numbers from `from` up to, but not including, `to`. */
export const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);
