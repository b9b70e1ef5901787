import type { Collector } from "../model/snapshot.ts";
import type { Category, Lane } from "./limits.ts";
import { CATEGORY_OF, type Plan } from "./planner.ts";

/** What shares the permits that actions leave. The hourly statistics go with the others. */
export const FLOWS = ["nodes", "sessions", "details", "stats"] as const;
export type Flow = (typeof FLOWS)[number];

/** The share of each flow, in any one unit, such as calls a minute. */
export type Weights = Readonly<Record<Flow, number>>;

/** The flow of a call; null for an action, which goes before all of them. */
export function flowOf(category: Category, lane: Lane): Flow | null {
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
 * flow saves nothing up.
 */
export interface FairShare {
  setWeights(weights: Weights): void;
  /** The first waiting call of a flow arrived. */
  begin(flow: Flow): void;
  /** One call of a flow was served. */
  serve(flow: Flow): void;
  /** The given flows, the one to be served first at the head. */
  order(flows: readonly Flow[]): readonly Flow[];
}

/** Least weight: a flow that is planned to make no calls is served all the same once it has one, in its turn. */
const WEIGHT_MIN = 0.01;

/** Creates a fair share in which all flows weigh the same until weights are set. */
export function createFairShare(): FairShare {
  let weights: Weights = { nodes: 1, sessions: 1, details: 1, stats: 1 };
  /** Virtual time: the start of the call served last. */
  let now = 0;
  /** When the next call of each flow starts, in virtual time. */
  const starts: Record<Flow, number> = { nodes: 0, sessions: 0, details: 0, stats: 0 };
  return {
    setWeights(next) {
      weights = next;
    },
    begin(flow) {
      starts[flow] = Math.max(starts[flow], now);
    },
    serve(flow) {
      now = Math.max(now, starts[flow]);
      starts[flow] += 1 / Math.max(WEIGHT_MIN, weights[flow]);
    },
    order: (flows) => flows.toSorted((a, b) => starts[a] - starts[b] || FLOWS.indexOf(a) - FLOWS.indexOf(b)),
  };
}

/** Until its length is known, a list gets so many times what everything else in its category could need. */
const UNSEEN_FACTOR = 4;

/**
 * Weights by which the plan comes true: the planned calls a minute of each flow. A list of unknown length comes before
 * routine reads: all else follows from it. `room`: calls a minute that polling may make in each category.
 */
export function weightsOf(
  planned: Plan,
  room: Readonly<Record<Category, number | null>>,
  unseen: ReadonlySet<Flow>,
): Weights {
  const rate = (collector: Collector) => planned[collector]?.callsPerMinute ?? 0;
  const list = (collector: "nodes" | "sessions") =>
    unseen.has(collector) ? UNSEEN_FACTOR * (room[CATEGORY_OF[collector]] ?? 0) : rate(collector);
  return {
    nodes: list("nodes"),
    sessions: list("sessions"),
    details: rate("details"),
    stats: rate("stats") + rate("hourly"),
  };
}
