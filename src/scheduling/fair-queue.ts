import { MINUTE_MS } from "../base/duration.ts";
import type { Collector } from "../model/snapshot.ts";
import type { Category, Lane } from "../rate-limit/limits.ts";
import type { Plan } from "./planner.ts";
import { CATEGORY_OF_COLLECTOR } from "./polling-capacity.ts";

/** Classes of calls that share the permits that actions leave. `stats` includes the hourly statistics. */
export const TRAFFIC_CLASSES = ["nodes", "sessions", "details", "stats"] as const;
export type TrafficClass = (typeof TRAFFIC_CLASSES)[number];

/** Share of a traffic class. */
interface TrafficShare {
  /** Weight relative to other classes, such as calls per minute. */
  readonly weight: number;
  /** Calls that an idle class saves and may make at once, so that a short walk is read without a wait. */
  readonly savedMax: number;
}

/** Shares of all traffic classes. */
export type TrafficShares = Readonly<Record<TrafficClass, TrafficShare>>;

const CLASS_OF_LANE = {
  action: null,
  lookup: "nodes",
  suspect: "details",
  detail: "details",
  stats: "stats",
} as const;

/** Returns the traffic class of a call, or null for an action, which precedes all classes. */
export function trafficClassOf(category: Category, lane: Lane): TrafficClass | null {
  if (lane === "walk") return category === "node_management" ? "nodes" : "sessions";
  return CLASS_OF_LANE[lane];
}

/** Minimum weight, so that a class without planned calls is served too if one of its calls waits. */
const WEIGHT_MIN = 0.01;
const EQUAL_SHARE: TrafficShare = { weight: 1, savedMax: 0 };

/**
 * Decides which traffic class is served next, by start-time fair queueing (Goyal, Vin and Cheng, 1996). Classes with
 * waiting calls are served in the ratio of their weights, and a class that needs less than its share leaves the rest to
 * the others. All classes have the same weight until shares are set.
 */
export class FairQueue {
  #shares: TrafficShares = { nodes: EQUAL_SHARE, sessions: EQUAL_SHARE, details: EQUAL_SHARE, stats: EQUAL_SHARE };
  /** When the last served call was due, in virtual time. */
  #now = 0;
  /** When the next call of each class starts at the rate of its weight, in virtual time. */
  readonly #starts: Record<TrafficClass, number> = { nodes: 0, sessions: 0, details: 0, stats: 0 };

  setShares(shares: TrafficShares): void {
    this.#shares = shares;
  }

  /** Call it when the first waiting call of a class arrives. */
  activate(trafficClass: TrafficClass): void {
    this.#starts[trafficClass] = Math.max(this.#starts[trafficClass], this.#now);
  }

  /** Records that one call of a class was served. */
  recordServed(trafficClass: TrafficClass): void {
    this.#now = Math.max(this.#now, this.#dueAt(trafficClass));
    this.#starts[trafficClass] += this.#costOf(trafficClass);
  }

  /** Sorts the classes in the order in which to serve them; those that are due at the same time keep theirs. */
  order(trafficClasses: readonly TrafficClass[]): readonly TrafficClass[] {
    return trafficClasses.toSorted((a, b) => this.#dueAt(a) - this.#dueAt(b));
  }

  /** Returns the virtual time that one call takes. */
  #costOf(trafficClass: TrafficClass): number {
    return 1 / Math.max(WEIGHT_MIN, this.#shares[trafficClass].weight);
  }

  /** Returns when the next call is due. Saved calls are due earlier. */
  #dueAt(trafficClass: TrafficClass): number {
    return this.#starts[trafficClass] - this.#shares[trafficClass].savedMax * this.#costOf(trafficClass);
  }
}

/** Weight of a list of unknown length, as a multiple of what its category allows per minute. */
const UNKNOWN_LENGTH_FACTOR = 4;

/**
 * Maximum part of a walk to read at once, as a share of what the category allows per minute, because other classes wait
 * in the meantime.
 */
const SAVED_MINUTES_MAX = 0.15;

/**
 * Returns the shares that implement the plan, which are the planned calls per minute of each class. A list of unknown
 * length (`unseen`) precedes routine reads, since everything else depends on it. `capacity` is in polling calls per
 * minute of each category.
 */
export function trafficSharesOf(
  plan: Plan,
  capacity: Readonly<Record<Category, number>>,
  unseen: ReadonlySet<TrafficClass>,
): TrafficShares {
  const rate = (collector: Collector) => plan[collector]?.callsPerMinute ?? 0;
  const ofList = (list: "nodes" | "sessions"): TrafficShare => {
    const { callsPerMinute = 0, pacedMs = 0 } = plan[list] ?? {};
    const available = capacity[CATEGORY_OF_COLLECTOR[list]];
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
