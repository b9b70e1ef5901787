import { type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";

/** What the answers of the service showed the daemon of the nodes: each list page and each read that was delivered. */
export interface Observations {
  /** A process begins: what it sees first is no continuation of what the one before saw. */
  startWalk(): void;
  recordPage(body: Uint8Array, at: MonotonicMs): void;
  recordRead(node: string, status: number, body: Uint8Array, at: MonotonicMs): void;
  /** A walk of the list ended. `ids`: the nodes that the daemon knows after it. */
  endWalk(ids: ReadonlySet<string>): readonly string[];
  /** For how long answers that follow each other showed the node offline, at most since it was seen well for a while. */
  offlineMs(node: string): DurationMs;
}

/** Nodes that a process forgets have not been shown by so many walks, unless a read was answered with 404. */
const WALKS_UNTIL_GONE = 2;
/** The longest `clear_for` of any policy: a timer that fired may go on for so long while the node is seen well. */
const CLEAR_MS_MAX: DurationMs = 15 * MINUTE_MS;

interface SeenNode {
  offlineMs: DurationMs;
  /** The most that it was since the node was last seen well for {@link CLEAR_MS_MAX}. */
  mostMs: DurationMs;
  wellMs: DurationMs;
  verdict: "offline" | "other" | "unknown";
  at: MonotonicMs;
  /** The walk that showed it last, and whether a read found no such node since. */
  shownIn: number;
  isNotFound: boolean;
}

interface ListRecord {
  readonly id?: unknown;
  readonly status?: unknown;
}

/** Creates observations of which there are none. */
export function createObservations(): Observations {
  const nodes = new Map<string, SeenNode>();
  let known: ReadonlySet<string> = new Set();
  let walk = 1;

  function seenNode(node: string): SeenNode {
    const found = nodes.get(node);
    if (found !== undefined) return found;
    const fresh: SeenNode = {
      offlineMs: 0,
      mostMs: 0,
      wellMs: 0,
      verdict: "unknown",
      at: 0,
      shownIn: 0,
      isNotFound: false,
    };
    nodes.set(node, fresh);
    return fresh;
  }

  function take({ id, status }: ListRecord, at: MonotonicMs): SeenNode | null {
    if (typeof id !== "string" || id === "") return null;
    const node = seenNode(id);
    const isKnown = NODE_STATUSES.some((each) => each === status && each !== "unknown");
    const verdict = status === "offline" ? "offline" : isKnown ? "other" : "unknown";
    const sinceMs = verdict === node.verdict ? at - node.at : 0;
    if (verdict === "offline") [node.offlineMs, node.wellMs] = [node.offlineMs + sinceMs, 0];
    if (verdict === "other") [node.offlineMs, node.wellMs] = [0, node.wellMs + sinceMs];
    node.mostMs = node.wellMs >= CLEAR_MS_MAX ? 0 : Math.max(node.mostMs, node.offlineMs);
    [node.verdict, node.at] = [verdict, at];
    return node;
  }

  return {
    startWalk() {
      known = new Set();
      for (const node of nodes.values()) {
        node.verdict = "unknown";
        node.shownIn = 0;
      }
    },
    recordPage(body, at) {
      for (const record of recordsOf(body)) {
        const node = take(record, at);
        if (node === null) continue;
        node.shownIn = walk;
        node.isNotFound = false;
      }
    },
    recordRead(id, status, body, at) {
      if (status === 404) seenNode(id).isNotFound = true;
      if (status === 200) take(parsed(body) as ListRecord, at);
    },
    endWalk(ids) {
      const tooSoon = [...known].filter((id) => {
        if (ids.has(id)) return false;
        const { shownIn, isNotFound } = seenNode(id);
        return !isNotFound && walk - shownIn < WALKS_UNTIL_GONE;
      });
      known = ids;
      walk++;
      return tooSoon;
    },
    offlineMs: (node) => nodes.get(node)?.mostMs ?? 0,
  };
}

function recordsOf(body: Uint8Array): readonly ListRecord[] {
  const page = parsed(body);
  if (typeof page !== "object" || page === null || !("data" in page) || !Array.isArray(page.data)) return [];
  return page.data.filter((record) => typeof record === "object" && record !== null);
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()) ?? {};
  } catch {
    return {};
  }
}
