import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import { clockSkewAt } from "../../../src/simulator/http/faults.ts";
import type { PostAttempt, SimulationParts } from "../daemon/simulation-parts.ts";
import { untrustedSpans } from "./untrusted-spans.ts";

/** Walks are looked at once a while, and the service's clock is known to a second. */
const SLACK_MS = 5 * SECOND_MS;

/**
 * Nobody is touched while sight is stale, partial or not to be believed: neither by what the daemon itself shows of its
 * walks, nor by what truly stands in its way.
 */
export function inventoryTrustInvariant(post: PostAttempt, parts: SimulationParts): string | null {
  const { process: daemonProcess, rules, clock, bornAt } = parts;
  const fleet = daemonProcess?.snapshot()?.fleet;
  const walk = fleet?.lastWalk ?? null;
  if (daemonProcess === null || fleet === undefined || walk === null || fleet.settledAt === null)
    return "nothing was seen yet";
  const { trust } = rules.safety;
  const nodes = Math.min(parts.service.world.fleet.nodes.length, parts.acceptedNodes);
  const now = clock.monotonic() - bornAt;
  const freshMs = daemonProcess.plan().nodes?.freshMs ?? 0;
  if (!walk.complete) return "the last walk was not complete";
  if (walk.completeWalks < trust.warmupWalks) return `there were ${walk.completeWalks} complete walks`;
  if (now - fleet.settledAt > freshMs + SLACK_MS) return `the last walk is ${now - fleet.settledAt} ms old`;
  if (walk.seenNodes < trust.minInventory * nodes - 1) return `${walk.seenNodes} of ${nodes} nodes are seen`;
  const unknown = unknownIn(fleet) + walk.rejected;
  if (unknown > trust.maxUnknown * (walk.seenNodes + walk.rejected) + 1) return `${unknown} nodes are not known`;
  const freshest = freshestMs(
    fleet,
    parts.serviceNow() + clockSkewAt(parts.service.world.faultSchedule, parts.serviceNow()) - now,
  );
  if (freshest > trust.maxFreshestLastSeenMs + MINUTE_MS) return `the freshest last_seen is ${freshest} ms old`;
  return untrustedSpans(post, parts);
}

const unknownIn = ({ ids, status }: Fleet): number =>
  ids.filter((id, slot) => id !== "" && NODE_STATUSES[status[slot]!] === "unknown").length;

/** Age of the freshest last_seen when it was observed. `ahead`: of the service's clock to the daemon's monotonic one. */
function freshestMs({ ids, lastSeenMs, listedAt }: Fleet, ahead: number): number {
  const ages = ids.flatMap((id, slot) => (id === "" ? [] : [listedAt[slot]! + ahead - lastSeenMs[slot]!]));
  return Math.min(...ages.filter((age) => !Number.isNaN(age)));
}
