import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import { clockSkewAt } from "../../../src/simulator/http/faults.ts";
import type { PostAttempt, SimulationParts } from "../daemon/simulation-parts.ts";
import { untrustedSpans } from "./untrusted-spans.ts";

/** Time between two publications, and the precision of the service's clock. */
const SLACK_MS = 5 * SECOND_MS;

/**
 * No action is sent while the inventory is stale, partial or contradictory, by the daemon's own snapshot or because of
 * a fault that is actually active. Returns the reason, or null if the inventory may be trusted.
 */
export function inventoryTrustInvariant(post: PostAttempt, parts: SimulationParts): string | null {
  const { process: daemonProcess, config } = parts;
  const fleet = daemonProcess?.snapshot()?.fleet;
  const walk = fleet?.lastWalk ?? null;
  if (daemonProcess === null || fleet === undefined || walk === null || fleet.settledAt === null)
    return "no walk has completed";
  const { trust } = config.safety;
  const nodes = Math.min(parts.service.network.fleet.nodes.length, parts.acceptedNodes);
  const now = daemonProcess.monotonic();
  const freshMs = daemonProcess.plan().nodes?.freshMs ?? 0;
  if (!walk.complete) return "the last walk is incomplete";
  if (walk.completeWalks < trust.warmupWalks) return `only ${walk.completeWalks} walks were complete`;
  if (now - fleet.settledAt > freshMs + SLACK_MS) return `the last walk is ${now - fleet.settledAt} ms old`;
  if (walk.seenNodes < trust.minInventory * nodes - 1) return `${walk.seenNodes} of ${nodes} nodes were listed`;
  const unknown = unknownIn(fleet) + walk.rejected;
  if (unknown > trust.maxUnknown * (walk.seenNodes + walk.rejected) + 1)
    return `the status of ${unknown} nodes is unknown`;
  const serviceTimeAt = (at: number) => {
    const trueTime = parts.serviceNow() - now + at;
    return trueTime + clockSkewAt(parts.service.network.faultSchedule, trueTime);
  };
  const freshest = freshestMs(fleet, serviceTimeAt);
  if (freshest > trust.maxFreshestLastSeenMs + MINUTE_MS) return `the freshest last_seen is ${freshest} ms old`;
  return untrustedSpans(post, parts);
}

const unknownIn = ({ ids, status }: Fleet): number =>
  ids.filter((id, slot) => id !== "" && NODE_STATUSES[status[slot]!] === "unknown").length;

/**
 * Returns the age of the latest last_seen when it was listed. `serviceTimeAt` returns the service's time, as known
 * then.
 */
function freshestMs({ ids, lastSeenMs, listedAt }: Fleet, serviceTimeAt: (at: number) => number): number {
  const ages = ids.flatMap((id, slot) => (id === "" ? [] : [serviceTimeAt(listedAt.at(slot)) - lastSeenMs.at(slot)]));
  return Math.min(...ages.filter((age) => !Number.isNaN(age)));
}
