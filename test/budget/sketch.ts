import type { NodeRecord } from "../../src/model/node.ts";

/** A node as a list shows it, but for what a test says otherwise. */
export const listed = (said: Partial<NodeRecord>): NodeRecord => ({
  id: "node_0",
  name: null,
  status: "online",
  country: "DE",
  region: "eu",
  ipAddress: null,
  version: "1.0",
  lastSeenMs: 0,
  uptimeHours: 100,
  activeSessions: 40,
  bandwidthGb: 500,
  ...said,
});
