import type { NODE_ORDERS, ServiceOptions } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import type { World } from "../network.ts";
import type { NodeOrder } from "./endpoint-context.ts";
import { bandwidthOf, reportedAt, uptimeHours } from "./node-view.ts";

type Field = (typeof NODE_ORDERS)[number];
type SortKey = number | string;

/** Fields that change as time passes, without a change of the fleet. */
const TIME_DEPENDENT_FIELDS: ReadonlySet<Field> = new Set<Field>([
  "last_seen",
  "uptime_hours",
  "active_sessions",
  "bandwidth_gb",
]);

/**
 * Creates the order of a node list. The nodes are sorted only after a change, starting from the previous, nearly sorted
 * order, which takes 0.2 ms for 5,000 nodes.
 */
export function createNodeOrder(order: ServiceOptions["nodeList"]["order"], world: World): NodeOrder {
  const { fleet } = world;
  if (order === "joined") return () => fleet.nodes;
  const isDescending = order.startsWith("-");
  const field = (isDescending ? order.slice(1) : order) as Field;
  const sign = isDescending ? -1 : 1;
  const keys: SortKey[] = [];
  let sorted: SimulatedNode[] = [];
  let membershipChanges = -1;
  let sortedState = "";

  function compare(one: SimulatedNode, other: SimulatedNode): number {
    const [left, right] = [keys[one.index]!, keys[other.index]!];
    return left === right ? one.index - other.index : left < right ? -sign : sign;
  }

  return (at, seenUntil) => {
    const state = TIME_DEPENDENT_FIELDS.has(field) ? `${fleet.changeCount} ${at} ${seenUntil}` : `${fleet.changeCount}`;
    if (state === sortedState) return sorted;
    sortedState = state;
    if (membershipChanges !== fleet.membershipChangeCount) sorted = [...fleet.nodes];
    membershipChanges = fleet.membershipChangeCount;
    for (const node of sorted) keys[node.index] = sortKey(field, world, node, at, seenUntil);
    return sorted.sort(compare);
  };
}

function sortKey(field: Field, world: World, node: SimulatedNode, at: EpochMs, seenUntil: EpochMs): SortKey {
  switch (field) {
    case "last_seen":
      return reportedAt(node, at, seenUntil);
    case "uptime_hours":
      return uptimeHours(node, at);
    case "active_sessions":
      return world.traffic.population.nodes[node.index]!.active;
    case "bandwidth_gb":
      return bandwidthOf(world, node, at);
    case "created_at":
      return node.createdAt;
    case "updated_at":
      return node.changedAt;
    case "ip_address":
      return node.ipAddress;
    case "id":
    case "name":
    case "status":
    case "country":
    case "region":
    case "version":
      return node[field];
    default:
      return field satisfies never;
  }
}
