import { formatDuration, formatSecondsLeft } from "../../base/duration.ts";
import { countNoun } from "../../base/text.ts";
import { FAILURE_DOMAINS, type FailureDomain, type PerFailureDomain } from "../../model/node.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { Location } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import { type DomainCount, type FleetCounts, NO_NODES } from "../fleet-counts.ts";
import { defineSimpleGuard } from "./guard-types.ts";

/** Maximum number of nodes or actions that a detail names. The rest are only counted. */
const NAMES_MAX = 3;

/** Limits how many actions are sent and not yet verified. */
export const inFlightGuard = defineSimpleGuard({
  reason: "in_flight",
  counts: "actions that are sent and not yet verified, including those of lost nodes",
  condition: "there are already `safety.max_in_flight` of them",
  ends: "automatically, once one is verified or its time is up",
  policyWide: true,
  details: ({ node }, { inFlight, nameOf, records, safety: { maxInFlight } }) => {
    // An action in flight on the node itself only blocks other nodes: its episode has the node, unless it is suspended.
    const others = inFlight.filter(
      (action) => action.node !== node.id || records.episode(action.episode)?.state === "suspended",
    );
    if (others.length < maxInFlight) return [];
    const names = others.slice(0, NAMES_MAX).map((action) => `${action.id} on ${nameOf(action.node)}`);
    const rest = others.length - names.length;
    const listed = names.length === 0 ? "" : `: ${names.join(", ")}${rest === 0 ? "" : ` and ${rest} more`}`;
    const count = `${others.length} ${others.length === 1 ? "action is" : "actions are"}`;
    return [`${count} in flight, not yet verified; the limit is ${maxInFlight}${listed}`];
  },
});

/** Limits how many nodes our actions make unavailable at the same time. */
export const disruptedGuard = defineSimpleGuard({
  reason: "disrupted",
  counts:
    "nodes that the daemon's actions make unavailable: rebooting, disconnected, down after an action, quarantined by the daemon (unless they were offline before), or lost",
  condition: "there would be more than `amount` or `percent` of `safety.max_disrupted`, whichever is smaller",
  ends: "automatically, once one of them is available again, or with `accept-inventory` if nodes are lost or down",
  operatorAction:
    "`accept-inventory` if nodes that are lost or down will not come back; end a quarantine that lasts longer than requested",
  policyWide: true,
  details: ({ node }, { fleetCounts, limits }) => {
    const after = fleetCounts.disrupted.size + (fleetCounts.disrupted.has(node.id) ? 0 : 1);
    if (after <= limits.maxDisrupted) return [];
    const count = countOf(fleetCounts.disrupted.size);
    return [`${count} disrupted; the limit is ${limits.maxDisrupted}${describeCauses(fleetCounts)}`];
  },
});

const countOf = (nodes: number): string => `${nodes} ${nodes === 1 ? "node is" : "nodes are"}`;

/** Describes those of the counted nodes that may not become available without an operator. */
function describeCauses({ unreturned, overdue }: Pick<FleetCounts, "unreturned" | "overdue">): string {
  const texts: string[] = [];
  if (unreturned.length > 0)
    texts.push(
      `${unreturned.length} of them left the list or stayed down after an action (${nodeNames(unreturned)}); such nodes count until they are available again or accept-inventory is run`,
    );
  if (overdue.length > 0)
    texts.push(
      `${overdue.length} of them ${overdue.length === 1 ? "is" : "are"} still in a quarantine that should have ended (${nodeNames(overdue)}); such nodes count until the service or an operator ends it`,
    );
  return texts.map((text) => `; ${text}`).join("");
}

const nodeNames = (episodes: readonly Episode[]): string =>
  `${episodes
    .slice(0, NAMES_MAX)
    .map(({ node }) => node)
    .join(", ")}${episodes.length > NAMES_MAX ? ", …" : ""}`;

/** Limits the disrupted nodes of a region or country. */
export const disruptedDomainGuard = defineSimpleGuard({
  reason: "disrupted_domain",
  counts: "disrupted nodes (as above) that are in the region or country of the node, or were when their episode began",
  condition: "there would be more than `safety.max_disrupted_per`",
  ends: "automatically, once one of them is available again, or with `accept-inventory` if nodes are lost or down",
  operatorAction:
    "`accept-inventory` if nodes that are lost or down will not come back; end a quarantine that lasts longer than requested",
  details: ({ node, episode }, { fleetCounts, safety }) => {
    const added = fleetCounts.disrupted.has(node.id) ? 0 : 1;
    // The node will count in both.
    const locations = episode === null ? [node] : [node, episode];
    return checkDomains(locations, fleetCounts, safety.maxDisruptedPer, ({ disrupted }, limit, domain, name) => {
      if (disrupted + added <= limit) return null;
      const ofDomain = (episodes: readonly Episode[]) => episodes.filter((each) => each[domain] === name);
      const causes = describeCauses({
        unreturned: ofDomain(fleetCounts.unreturned),
        overdue: ofDomain(fleetCounts.overdue),
      });
      return `${countOf(disrupted)} disrupted in the ${domain} ${name || "(none)"}; the limit is ${limit}${causes}`;
    });
  },
});

/**
 * Keeps a minimum of online nodes in a region or country. An action on an offline node does not reduce their number.
 */
export const minOnlineGuard = defineSimpleGuard({
  reason: "min_online",
  counts: "online nodes of the region or country that the last complete walk found, in the list or by a lookup",
  condition: "fewer than `safety.min_online_per` would stay online, and the node is online",
  ends: "automatically, once more nodes are online; an online node that is the only one of its region or country stays held",
  operatorAction: "if the region has too few nodes, act by hand or lower `safety.min_online_per`",
  details: ({ node }, { fleetCounts, safety }) => {
    if (node.status !== "online") return [];
    const removed = fleetCounts.disrupted.has(node.id) ? 0 : 1;
    return checkDomains([node], fleetCounts, safety.minOnlinePer, ({ online }, limit, domain, name) => {
      if (online - removed >= limit) return null;
      const left = countNoun(Math.max(0, online - removed), "node");
      return `${left} of the ${domain} ${name || "(none)"} would stay online; the minimum is ${limit}`;
    });
  },
});

/** Limits how many actions are sent within a period. */
export const maxActionsGuard = defineSimpleGuard({
  reason: "max_actions",
  counts: "actions sent, of any kind: every POST that the service answered or may have received",
  condition: "`amount` of them were sent within `per` (`safety.max_actions`)",
  ends: "automatically, once fewer than `safety.max_actions.amount` were sent within `safety.max_actions.per`",
  policyWide: true,
  details: (_candidate, { sentAtTimes, assumedActionCount, safety, now }) => {
    const { amount, perMs } = safety.maxActions;
    if (sentAtTimes.length < amount) return [];
    const next =
      amount === 0 ? "" : `; the next in ${formatSecondsLeft(blockingSince(sentAtTimes, amount) + perMs - now)}`;
    const assumed =
      assumedActionCount === 0 ? "" : `; ${assumedActionCount} of them assumed because the journal is new`;
    const sent = `${countNoun(sentAtTimes.length, "action")} within ${formatDuration(perMs)}`;
    return [`${sent}; the limit is ${amount}${next}${assumed}`];
  },
});

/** Returns when the action was sent that must become too old to count before another action is allowed. */
const blockingSince = (sentAtTimes: readonly EpochMs[], limit: number): EpochMs =>
  sentAtTimes.toSorted((a, b) => a - b)[sentAtTimes.length - limit]!;

function checkDomains(
  locations: readonly Location[],
  { domains }: FleetCounts,
  limits: PerFailureDomain,
  check: (count: DomainCount, limit: number, domain: FailureDomain, name: string) => string | null,
): string[] {
  return FAILURE_DOMAINS.flatMap((domain) => {
    const limit = limits[domain];
    if (limit === null) return [];
    const names = new Set(locations.map((location) => location[domain]));
    return [...names].flatMap((name) => check(domains[domain].get(name) ?? NO_NODES, limit, domain, name) ?? []);
  });
}

/** The guards that limit actions. */
export const LIMIT_GUARDS = [inFlightGuard, disruptedGuard, disruptedDomainGuard, minOnlineGuard, maxActionsGuard];
