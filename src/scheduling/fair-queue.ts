import { MINUTE_MS } from "../base/duration.ts";
import type { Collector } from "../model/snapshot.ts";
import type { Category, Lane } from "../rate-limit/limits.ts";
import { CATEGORY_OF_COLLECTOR, type Plan } from "./planner.ts";

/** What shares the permits that actions leave. The hourly statistics go with the others. */
export const TRAFFIC_CLASSES = ["nodes", "sessions", "details", "stats"] as const;
export type TrafficClass = (typeof TRAFFIC_CLASSES)[number];

/** The share of a flow. */
export interface TrafficShare {
  /** Its weight, in a unit that all flows have in common, such as calls a minute. */
  readonly weight: number;
  /** Calls that it may make ahead of its weight, and earns back while it is idle: a short walk is read at once when it is due. */
  readonly savedMax: number;
}

/** The shares of all flows. */
export type TrafficShares = Readonly<Record<TrafficClass, TrafficShare>>;

/** The flow of a call; null for an action, which goes before all of them. */
export function trafficClassOf(category: Category, lane: Lane): TrafficClass | null {
  switch (lane) {
    case "action":
      return null;
    case "walk":
      return category === "node_management" ? "nodes" : "sessions";
    case "suspect":
    case "detail":
      return "details";
    case "stats":
      return "stats";
    default:
      return lane satisfies never;
  }
}

/**
 * Decides which flow is served next by start-time fair queueing (Goyal, Vin and Cheng, 1996): flows with waiting calls are
 * served in the ratio of their weights, a flow that needs less than its share leaves the rest to the others, and an idle
 * flow saves up no more than {@link TrafficShare.savedMax}.
 */
export interface FairQueue {
  setShares(shares: TrafficShares): void;
  /** The first waiting call of a flow arrived. */
  activate(flow: TrafficClass): void;
  /** One call of a flow was served. */
  recordServed(flow: TrafficClass): void;
  /** The given flows, the one to be served first at the head. */
  order(flows: readonly TrafficClass[]): readonly TrafficClass[];
}

/** Least weight: a flow that is planned to make no calls is served all the same once it has one, in its turn. */
const WEIGHT_MIN = 0.01;

/** Creates a fair share in which all flows weigh the same until shares are set. */
export function createFairQueue(): FairQueue {
  const equalShares = { weight: 1, savedMax: 0 };
  let shares: TrafficShares = { nodes: equalShares, sessions: equalShares, details: equalShares, stats: equalShares };
  /** Virtual time that one call of the flow takes. */
  const costOf = (flow: TrafficClass): number => 1 / Math.max(WEIGHT_MIN, shares[flow].weight);
  /** Virtual time: when the call served last was due. */
  let now = 0;
  /** When the next call of each flow starts at the rate of its weight, in virtual time. */
  const starts: Record<TrafficClass, number> = { nodes: 0, sessions: 0, details: 0, stats: 0 };
  /** When it is due: what the flow saved up comes early. */
  const dueAt = (flow: TrafficClass): number => starts[flow] - shares[flow].savedMax * costOf(flow);
  return {
    setShares(next) {
      shares = next;
    },
    activate(flow) {
      starts[flow] = Math.max(starts[flow], now);
    },
    recordServed(flow) {
      now = Math.max(now, dueAt(flow));
      starts[flow] += costOf(flow);
    },
    order: (flows) =>
      flows.toSorted((a, b) => dueAt(a) - dueAt(b) || TRAFFIC_CLASSES.indexOf(a) - TRAFFIC_CLASSES.indexOf(b)),
  };
}

/** Until its length is known, a list gets so many times what everything else in its category could need. */
const UNKNOWN_LENGTH_FACTOR = 4;

/** Of a long walk, only so much is read at once, as a share of what the category carries in a minute: others wait meanwhile. */
const SAVED_MINUTES_MAX = 0.15;

/**
 * Shares by which the plan comes true: the planned calls a minute of each flow. A list of unknown length comes before
 * routine reads: all else follows from it. `room`: calls a minute that polling may make in each category.
 */
export function trafficSharesOf(
  planned: Plan,
  room: Readonly<Record<Category, number | null>>,
  unseen: ReadonlySet<TrafficClass>,
): TrafficShares {
  const rate = (collector: Collector) => planned[collector]?.callsPerMinute ?? 0;
  const list = (collector: "nodes" | "sessions") =>
    unseen.has(collector) ? UNKNOWN_LENGTH_FACTOR * (room[CATEGORY_OF_COLLECTOR[collector]] ?? 0) : rate(collector);
  const ofRun = (collector: "nodes" | "sessions", weight: number): TrafficShare => {
    const { callsPerMinute = 0, pacedMs = 0 } = planned[collector] ?? {};
    const calls = (callsPerMinute * pacedMs) / MINUTE_MS;
    return { weight, savedMax: Math.min(calls, SAVED_MINUTES_MAX * (room[CATEGORY_OF_COLLECTOR[collector]] ?? 0)) };
  };
  return {
    nodes: ofRun("nodes", list("nodes")),
    sessions: ofRun("sessions", list("sessions")),
    details: { weight: rate("details"), savedMax: 0 },
    stats: { weight: rate("stats") + rate("hourly"), savedMax: 1 },
  };
}
