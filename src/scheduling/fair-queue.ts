import { MINUTE_MS } from "../base/duration.ts";
import type { Collector } from "../model/snapshot.ts";
import type { Category, Lane } from "../rate-limit/limits.ts";
import type { Plan } from "./planner.ts";
import { CATEGORY_OF_COLLECTOR } from "./polling-capacity.ts";

/** Classes of calls that share the permits that actions leave. `stats` includes the hourly statistics. */
export const TRAFFIC_CLASSES = ["nodes", "sessions", "details", "stats"] as const;
export type TrafficClass = (typeof TRAFFIC_CLASSES)[number];

/** Share of a traffic class. */
export interface TrafficShare {
  /** Weight relative to other classes, such as calls per minute. */
  readonly weight: number;
  /** Calls that an idle class saves and may make at once, so that a short walk is read without a wait. */
  readonly savedMax: number;
}

/** Shares of all traffic classes. */
export type TrafficShares = Readonly<Record<TrafficClass, TrafficShare>>;

/** The traffic class of a call; null: an action, which precedes all classes. */
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
 * Decides which traffic class is served next, by start-time fair queueing (Goyal, Vin and Cheng, 1996). Classes with waiting
 * calls are served in the ratio of their weights, and a class that needs less than its share leaves the rest to the others.
 */
export interface FairQueue {
  setShares(shares: TrafficShares): void;
  /** Call it when the first waiting call of a class arrives. */
  activate(trafficClass: TrafficClass): void;
  /** Records that one call of a class was served. */
  recordServed(trafficClass: TrafficClass): void;
  /** Sorts the classes in the order in which to serve them. */
  order(trafficClasses: readonly TrafficClass[]): readonly TrafficClass[];
}

/** Minimum weight, so that a class without planned calls is served too if it has one. */
const WEIGHT_MIN = 0.01;

/** Creates a queue in which all classes have the same weight until shares are set. */
export function createFairQueue(): FairQueue {
  const equalShares = { weight: 1, savedMax: 0 };
  let shares: TrafficShares = { nodes: equalShares, sessions: equalShares, details: equalShares, stats: equalShares };
  /** Virtual time that one call takes. */
  const costOf = (trafficClass: TrafficClass): number => 1 / Math.max(WEIGHT_MIN, shares[trafficClass].weight);
  /** Virtual time: when the last served call was due. */
  let now = 0;
  /** When the next call of each class starts at the rate of its weight, in virtual time. */
  const starts: Record<TrafficClass, number> = { nodes: 0, sessions: 0, details: 0, stats: 0 };
  /** When it is due: saved calls come earlier. */
  const dueAt = (trafficClass: TrafficClass): number =>
    starts[trafficClass] - shares[trafficClass].savedMax * costOf(trafficClass);
  return {
    setShares(next) {
      shares = next;
    },
    activate(trafficClass) {
      starts[trafficClass] = Math.max(starts[trafficClass], now);
    },
    recordServed(trafficClass) {
      now = Math.max(now, dueAt(trafficClass));
      starts[trafficClass] += costOf(trafficClass);
    },
    order: (trafficClasses) =>
      trafficClasses.toSorted((a, b) => dueAt(a) - dueAt(b) || TRAFFIC_CLASSES.indexOf(a) - TRAFFIC_CLASSES.indexOf(b)),
  };
}

/** Weight of a list of unknown length, as a multiple of what its category allows per minute. */
const UNKNOWN_LENGTH_FACTOR = 4;

/** Maximum part of a walk to read at once, as a share of what the category allows per minute: other classes wait meanwhile. */
const SAVED_MINUTES_MAX = 0.15;

/**
 * Shares that implement the plan: the planned calls per minute of each class. A list of unknown length (`unseen`) precedes
 * routine reads, since everything else depends on it. `capacity`: polling calls per minute of each category; null: no limit.
 */
export function trafficSharesOf(
  plan: Plan,
  capacity: Readonly<Record<Category, number | null>>,
  unseen: ReadonlySet<TrafficClass>,
): TrafficShares {
  const rate = (collector: Collector) => plan[collector]?.callsPerMinute ?? 0;
  const ofList = (list: "nodes" | "sessions"): TrafficShare => {
    const { callsPerMinute = 0, pacedMs = 0 } = plan[list] ?? {};
    const available = capacity[CATEGORY_OF_COLLECTOR[list]] ?? 0;
    return {
      weight: unseen.has(list) ? UNKNOWN_LENGTH_FACTOR * available : callsPerMinute,
      savedMax: Math.min((callsPerMinute * pacedMs) / MINUTE_MS, SAVED_MINUTES_MAX * available),
    };
  };
  return {
    nodes: ofList("nodes"),
    sessions: ofList("sessions"),
    details: { weight: rate("details"), savedMax: 0 },
    stats: { weight: rate("stats") + rate("hourly"), savedMax: 1 },
  };
}
