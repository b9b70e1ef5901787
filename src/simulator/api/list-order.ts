import type { EpochMs } from "../../model/time.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import type { GroupMask } from "../sessions/ordered-groups.ts";
import type { ServiceBackend } from "./endpoint-context.ts";
import { listedNode } from "./node-view.ts";
import { listedSession } from "./session-view.ts";

/** Returns the nodes in list order at `at`. The service knows no report after `seenUntil`. */
export function nodesInOrder(service: ServiceBackend, at: EpochMs, seenUntil: EpochMs): readonly SimulatedNode[] {
  const { nodes } = service.network.fleet;
  const { order } = service.options.nodeList;
  if (order === "joined") return nodes;
  return sorted(nodes, order, (node, field) => {
    if (field === "created_at") return node.createdAt;
    return field === "updated_at" ? node.changedAt : (listedNode(service, node, at, seenUntil)[field] ?? 0);
  });
}

/** Returns the slots at positions `from` to `to` (excluded) of the list of the sessions in the given states. */
export function sessionsInOrder(
  service: ServiceBackend,
  groups: GroupMask,
  [from, to]: readonly [number, number],
  at: EpochMs,
): readonly number[] {
  const { ordered } = service.network.traffic.population.sessions;
  const { order } = service.options.sessionList;
  if (order === "started_at") return ordered.page(groups, from, to - from);
  const total = ordered.count(groups);
  if (order === "-started_at") {
    const end = Math.min(to, total);
    return ordered.page(groups, total - end, end - from).reverse();
  }
  const slots = ordered.page(groups, 0, total).sort((one, other) => one - other);
  return sorted(slots, order, (slot, field) => listedSession(service, slot, at)[field]).slice(from, to);
}

/** Sorts items by a field of their records, descending if `order` begins with a minus. Equal items keep their order. */
function sorted<Item, Field extends string>(
  items: readonly Item[],
  order: Field | `-${Field}`,
  sortValue: (item: Item, field: Field) => string | number,
): Item[] {
  const sign = order.startsWith("-") ? -1 : 1;
  const field = order.replace(/^-/, "") as Field;
  return items
    .map((item) => ({ item, key: sortValue(item, field) }))
    .sort((one, other) => (one.key === other.key ? 0 : one.key < other.key ? -sign : sign))
    .map(({ item }) => item);
}
