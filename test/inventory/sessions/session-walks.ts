import { SessionTotals, type SessionWalkEnd } from "../../../src/inventory/sessions/session-totals.ts";
import type { SessionNodeTableDeps } from "../../../src/inventory/sessions/sessions-by-node.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionRecord, type SessionStatus } from "../../../src/model/session.ts";

/** Returns a session record with overrides. */
export const session = (id: string, parts: Partial<SessionRecord> = {}): SessionRecord => ({
  id,
  customerId: "cust_1",
  nodeId: "node_1",
  status: "active",
  type: "http",
  startedAtMs: 0,
  durationSeconds: 10,
  bytesSent: 100,
  bytesReceived: 200,
  country: "DE",
  ...parts,
});

/** Creates session totals and a function that adds walks to them. */
export function createWalks(failedListed = false, parts: Partial<SessionNodeTableDeps> = {}) {
  const fold = new SessionTotals(failedListed, {
    isKnownNode: () => false,
    isFleetKnown: () => true,
    onFolded: () => {},
    ...parts,
  });
  let at = 0;
  return {
    fold,
    /** Adds a walk that begins at `beganAt` on the service's clock. Returns the number of distinct sessions. */
    walk(beganAt: number, sessions: readonly SessionRecord[], end: SessionWalkEnd = "complete") {
      fold.beginWalk(beganAt);
      const distinct = sessions.map((session) => fold.add(session)).filter(Boolean).length;
      Array.from(fold.endWalk(end, ++at));
      return distinct;
    },
    bytes: (nodeId = "node_1") => {
      const { nodes } = fold.view()!;
      const slot = nodes.ids.indexOf(nodeId);
      return [nodes.sentBytes[slot], nodes.receivedBytes[slot]];
    },
    count: (status: SessionStatus) => {
      const begin = SESSION_STATUSES.indexOf(status) * SESSION_TYPES.length;
      return fold
        .view()!
        .counts.slice(begin, begin + SESSION_TYPES.length)
        .reduce((sum, each) => sum + each, 0);
    },
    ended: () => fold.view()!.durations.reduce((sum, { count }) => sum + count, 0),
  };
}
