import { type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";

/** Node statuses that the service's answers delivered to the daemon, from list pages and single reads. */
export interface Observations {
  /** Resets what the previous process observed: a new process starts without it. */
  startProcess(): void;
  recordPage(body: Uint8Array, at: MonotonicMs): void;
  /** When the list last showed a node, or -Infinity if it never did. */
  listedAt(node: string): MonotonicMs;
  /** When an answer last showed a node, or -Infinity if none did. */
  observedAt(node: string): MonotonicMs;
  /** Whether the last answer that showed a node to this process showed it as offline. */
  isShownOffline(node: string): boolean;
  recordRead(node: string, status: number, body: Uint8Array, at: MonotonicMs): void;
  /** Ends a list walk. `ids` are the nodes that the daemon knows now. Returns nodes that it dropped too early. */
  endWalk(ids: ReadonlySet<string>): readonly string[];
  /**
   * The longest time for which consecutive answers showed the node offline, since it was last shown not offline for
   * {@link CLEAR_MS_MAX}.
   */
  offlineMs(node: string): DurationMs;
}

/** Walks without the node after which the daemon may drop it. After a 404 or 410 it may drop the node immediately. */
const WALKS_UNTIL_GONE = 2;
/** The longest `clear_for` of any policy: a timer may keep firing this long after the node recovered. */
const CLEAR_MS_MAX: DurationMs = 15 * MINUTE_MS;

interface ObservedNode {
  offlineMs: DurationMs;
  longestOfflineMs: DurationMs;
  notOfflineMs: DurationMs;
  status: "offline" | "other" | "unknown";
  at: MonotonicMs;
  /** Number of the last walk that listed the node, and when it did. */
  lastWalk: number;
  listedAt: MonotonicMs;
  /** Whether a read since then was answered with 404 or 410. */
  isNotFound: boolean;
}

/** A record of the node list, of which nothing is certain. */
export interface ListRecord {
  readonly [field: string]: unknown;
}

/** Creates empty observations. */
export function createObservations(): Observations {
  const nodes = new Map<string, ObservedNode>();
  let known: ReadonlySet<string> = new Set();
  let walk = 1;

  function observedNode(id: string): ObservedNode {
    const node = nodes.get(id) ?? {
      offlineMs: 0,
      longestOfflineMs: 0,
      notOfflineMs: 0,
      status: "unknown" as const,
      at: 0,
      lastWalk: 0,
      listedAt: Number.NEGATIVE_INFINITY,
      isNotFound: false,
    };
    nodes.set(id, node);
    return node;
  }

  function recordStatus({ id, status: listed }: ListRecord, at: MonotonicMs): ObservedNode | null {
    if (typeof id !== "string" || id === "") return null;
    const node = observedNode(id);
    const isKnown = NODE_STATUSES.some((each) => each === listed && each !== "unknown");
    const status = listed === "offline" ? "offline" : isKnown ? "other" : "unknown";
    const sinceMs = status === node.status ? at - node.at : 0;
    if (status === "offline") [node.offlineMs, node.notOfflineMs] = [node.offlineMs + sinceMs, 0];
    if (status === "other") [node.offlineMs, node.notOfflineMs] = [0, node.notOfflineMs + sinceMs];
    node.longestOfflineMs = node.notOfflineMs >= CLEAR_MS_MAX ? 0 : Math.max(node.longestOfflineMs, node.offlineMs);
    [node.status, node.at] = [status, at];
    return node;
  }

  return {
    startProcess() {
      known = new Set();
      for (const node of nodes.values()) {
        node.status = "unknown";
        node.lastWalk = 0;
      }
    },
    recordPage(body, at) {
      for (const record of recordsOf(body)) {
        const node = recordStatus(record, at);
        if (node === null) continue;
        node.lastWalk = walk;
        node.listedAt = at;
        node.isNotFound = false;
      }
    },
    recordRead(id, status, body, at) {
      if (status === 404 || status === 410) observedNode(id).isNotFound = true;
      if (status === 200) recordStatus(parseBody(body) as ListRecord, at);
    },
    endWalk(ids) {
      const droppedTooEarly = [...known].filter((id) => {
        if (ids.has(id)) return false;
        const { lastWalk, isNotFound } = observedNode(id);
        return !isNotFound && walk - lastWalk < WALKS_UNTIL_GONE;
      });
      known = ids;
      walk++;
      return droppedTooEarly;
    },
    listedAt: (node) => nodes.get(node)?.listedAt ?? Number.NEGATIVE_INFINITY,
    observedAt: (node) => nodes.get(node)?.at ?? Number.NEGATIVE_INFINITY,
    isShownOffline: (node) => nodes.get(node)?.status === "offline",
    offlineMs: (node) => nodes.get(node)?.longestOfflineMs ?? 0,
  };
}

/** Returns the records of a page, or none if the body is not a page. */
export function recordsOf(body: Uint8Array): readonly ListRecord[] {
  const page = parseBody(body);
  if (typeof page !== "object" || page === null || !("data" in page) || !Array.isArray(page.data)) return [];
  return page.data.filter((record) => typeof record === "object" && record !== null);
}

/** Returns what a body contains, or an empty object if it is not JSON. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()) ?? {};
  } catch {
    return {};
  }
}
