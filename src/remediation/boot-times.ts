import type { ApiClient } from "../api-client/client.ts";
import { type DurationMs, HOUR_MS, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { NodeId } from "../model/node.ts";
import { isRecentReboot, ownActions } from "../policy/own-actions.ts";
import type { DecisionContext } from "./context.ts";

/** What is needed to determine whether an id still belongs to the same node. */
export interface IdentityDeps extends Pick<DecisionContext, "observed" | "remediationState"> {
  readonly client: Pick<ApiClient, "serviceTime">;
}

/** Times on the clocks of the service and of the journal that differ by less are the same. */
const TOLERANCE_MS: DurationMs = 2 * SECOND_MS;
/** A service states boot times as `created_at` if it does so for this share of the online nodes. */
const BOOT_TIME_SHARE_MIN: Share = 0.9;
/** Fewer nodes prove nothing, because all of them may be new. */
const COMPARED_NODES_MIN = 3;

/**
 * Returns whether the new `created_at` of an id is the time of a boot that we caused, so that the id still belongs to
 * the same node. This is the case if the service states boot times, the boot followed our reboot within an hour, and
 * the node has the same name and was on the list all the time.
 */
export function isOurBoot({ observed, remediationState, client }: IdentityDeps, node: NodeId): boolean {
  const { records } = remediationState;
  const { at } = observed.latest!.snapshot;
  const serviceNow = client.serviceTime(at);
  const createdAt = observed.createdAtOf(node);
  if (serviceNow === null || createdAt === null) return false;
  const bootedAt = createdAt - serviceNow + remediationState.epochOf(at);
  return (
    ownActions(records, node, ({ nodeName }) => nodeName === observed.nameOf(node)).some(
      (action) => isRecentReboot(action, bootedAt) && action.sentAt! <= bootedAt + TOLERANCE_MS,
    ) && statesBootTimes(observed, serviceNow - at)
  );
}

/**
 * Returns whether the `created_at` of online nodes is the time of their boot, which `uptime_hours` gives to the hour.
 * `offsetMs` is how far the service's clock is ahead of the monotonic clock.
 */
function statesBootTimes(observed: IdentityDeps["observed"], offsetMs: DurationMs): boolean {
  const { ids, listedAt, uptimeHours, createdAtMs, slots } = observed.fleet;
  let [compared, same] = [0, 0];
  for (let slot = 0; slot < slots; slot++) {
    if (ids[slot] === "" || observed.statusAt(slot) !== "online") continue;
    const differenceMs = listedAt.at(slot) + offsetMs - uptimeHours.at(slot) * HOUR_MS - createdAtMs.at(slot);
    if (Number.isNaN(differenceMs)) continue;
    compared++;
    if (Math.abs(differenceMs) <= HOUR_MS + TOLERANCE_MS) same++;
  }
  return compared >= COMPARED_NODES_MIN && same >= compared * BOOT_TIME_SHARE_MIN;
}
