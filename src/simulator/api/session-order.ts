import type { SESSION_ORDERS, ServiceOptions } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import type { GroupMask } from "../sessions/ordered-groups.ts";
import type { ServiceBackend } from "./endpoint-context.ts";
import { type ListedSession, listedSession } from "./session-view.ts";

type Order = ServiceOptions["sessionList"]["order"];

/** Returns the slots of the sessions at these ascending positions of the list of the given states. */
export function slotsAt(
  service: ServiceBackend,
  groups: GroupMask,
  positions: readonly number[],
  at: EpochMs,
): number[] {
  const [first, last] = [positions[0], positions.at(-1)];
  if (first === undefined || last === undefined) return [];
  const { ordered } = service.world.traffic.population.sessions;
  const { order } = service.options.sessionList;
  const length = last - first + 1;
  if (order === "started_at") {
    const slots = ordered.page(groups, first, length);
    return positions.map((position) => slots[position - first]!);
  }
  const total = ordered.count(groups);
  if (order === "-started_at") {
    const slots = ordered.page(groups, total - 1 - last, length);
    return positions.map((position) => slots[last - position]!);
  }
  const slots = sorted(service, ordered.page(groups, 0, total), order, at);
  return positions.map((position) => slots[position]!);
}

function sorted(service: ServiceBackend, slots: readonly number[], order: Order, at: EpochMs): number[] {
  const isDescending = order.startsWith("-");
  const field = (isDescending ? order.slice(1) : order) as (typeof SESSION_ORDERS)[number] & keyof ListedSession;
  const sign = isDescending ? -1 : 1;
  return slots
    .map((slot) => ({ slot, key: listedSession(service, slot, at)[field] }))
    .sort((one, other) => (one.key === other.key ? one.slot - other.slot : one.key < other.key ? -sign : sign))
    .map(({ slot }) => slot);
}
