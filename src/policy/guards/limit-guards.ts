import { formatDuration, formatSecondsLeft } from "../../base/duration.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../../model/node.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { DomainCount } from "../facts.ts";
import type { Candidate, GuardRow } from "./guard.ts";

/** Nodes or actions that a detail names; the rest is only counted. */
const NAMES_MAX = 3;

/** Limits how many actions are sent and not yet verified. */
export const inFlightGuard: GuardRow = {
  reasons: {
    in_flight: {
      counts: "actions that are sent and not yet verified, also of lost nodes",
      condition: "there are `safety.max_in_flight`",
      ends: "automatically, once one is verified or its time is up",
      policyWide: true,
    },
  },
  check: ({ node }, { inFlight, limits }) => {
    // An action under way on the node itself is its open episode's; it blocks other nodes.
    const others = inFlight.filter((action) => action.node !== node.id);
    if (others.length < limits.maxInFlight) return [];
    const names = others.slice(0, NAMES_MAX).map(({ id, node }) => `${id} on ${node}`);
    const which = names.length === 0 ? "" : `: ${names.join(", ")}`;
    return [
      {
        reason: "in_flight",
        detail: `${others.length} of ${limits.maxInFlight} actions in flight are not yet verified${which}`,
      },
    ];
  },
};

/** Limits how many nodes our actions make unavailable at the same time. */
export const disruptedGuard: GuardRow = {
  reasons: {
    disrupted: {
      counts:
        "nodes that our actions make unavailable: rebooting, disconnected, in our quarantine unless they were offline before it, or lost",
      condition: "there would be more than the smaller of `amount` and `percent` of `safety.max_disrupted`",
      ends: "automatically, once one of them is available again; of lost nodes also with `accept-inventory`",
      operatorAction: "`accept-inventory` if the lost nodes will not come back",
      policyWide: true,
    },
  },
  check: ({ node }, { fleetCounts, limits }) => {
    const after = fleetCounts.disrupted.size + (fleetCounts.disrupted.has(node.id) ? 0 : 1);
    if (after <= limits.maxDisrupted) return [];
    const detail = `${fleetCounts.disrupted.size} nodes are disrupted, of ${limits.maxDisrupted} at most`;
    return [{ reason: "disrupted", detail: `${detail}${describeLostNodes(fleetCounts.lost)}` }];
  },
};

/** Describes the lost nodes among those that a limit counts. */
function describeLostNodes(lost: readonly Episode[]): string {
  if (lost.length === 0) return "";
  const names = lost.slice(0, NAMES_MAX).map(({ node }) => node);
  const more = lost.length > NAMES_MAX ? ", …" : "";
  return `; ${lost.length} of them left the list after an action (${names.join(", ")}${more}) and count until they return, or until accept-inventory`;
}

/** Limits the disrupted nodes of a region or country. */
export const disruptedDomainGuard: GuardRow = {
  reasons: {
    disrupted_domain: {
      counts: "the same in the region or country of the node",
      condition: "there would be more than `safety.max_disrupted_per`",
      ends: "automatically, once one of them is available again; of lost nodes also with `accept-inventory`",
      operatorAction: "`accept-inventory` if the lost nodes will not come back",
    },
  },
  check: (candidate, facts) => {
    const { fleetCounts, safety } = facts;
    const added = fleetCounts.disrupted.has(candidate.node.id) ? 0 : 1;
    return checkDomains(candidate, facts.fleetCounts.domains, safety.maxDisruptedPer, (domain, count, limit) =>
      count.disrupted + added <= limit
        ? null
        : {
            reason: "disrupted_domain",
            detail: `${count.disrupted} nodes of the ${domain} ${candidate.node[domain] || "(none)"} are disrupted, of ${limit} at most${describeLostNodes(fleetCounts.lost.filter((each) => each[domain] === candidate.node[domain]))}`,
          },
    );
  },
};

/** Keeps a minimum of online nodes in a region or country. Acting on an offline node does not lower it. */
export const minOnlineGuard: GuardRow = {
  reasons: {
    min_online: {
      counts: "online nodes of the region or country",
      condition: "fewer than `safety.min_online_per` would stay online, and the node is online",
      ends: "automatically, once more nodes are online; the only node of a region or country is held while it is online",
      operatorAction: "act by hand, or lower `safety.min_online_per`, where too few nodes exist",
    },
  },
  check: (candidate, { fleetCounts, safety }) => {
    if (candidate.node.status !== "online") return [];
    const removed = fleetCounts.disrupted.has(candidate.node.id) ? 0 : 1;
    return checkDomains(candidate, fleetCounts.domains, safety.minOnlinePer, (domain, count, limit) =>
      count.online - removed >= limit
        ? null
        : {
            reason: "min_online",
            detail: `${Math.max(0, count.online - removed)} nodes of the ${domain} ${candidate.node[domain] || "(none)"} would stay online; the minimum is ${limit}`,
          },
    );
  },
};

/** Limits how many actions are sent within a time. */
export const maxActionsGuard: GuardRow = {
  reasons: {
    max_actions: {
      counts: "actions sent, of any kind: every POST that the service answered, or may have received",
      condition: "there were `amount` within `per` of `safety.max_actions`",
      ends: "automatically, once the oldest of them is older than `per`",
      policyWide: true,
    },
  },
  check: (_candidate, { sentAtTimes: actedAt, assumedActionCount: assumedActions, limits, safety, now }) => {
    const { maxActions } = limits;
    if (actedAt.length < maxActions) return [];
    const { perMs } = safety.maxActions;
    const frees =
      maxActions === 0 ? "" : `; one is free in ${formatSecondsLeft(hasRoomAt(actedAt, maxActions) + perMs - now)}`;
    const assumed = assumedActions === 0 ? "" : `; ${assumedActions} of them are assumed, because the journal is new`;
    const detail = `${actedAt.length} actions within ${formatDuration(perMs)}, of ${maxActions} at most${frees}${assumed}`;
    return [{ reason: "max_actions", detail }];
  },
};

/** The action that must grow old before there is room for one more. */
function hasRoomAt(actedAt: readonly EpochMs[], limit: number): EpochMs {
  // Where the limit was lowered there is more than one too many.
  if (actedAt.length > limit) return actedAt.toSorted((a, b) => a - b)[actedAt.length - limit]!;
  return actedAt.reduce((oldest, at) => Math.min(oldest, at));
}

function checkDomains(
  { node }: Candidate,
  places: Readonly<Record<FailureDomain, ReadonlyMap<string, DomainCount>>>,
  limits: Readonly<Record<FailureDomain, number | null>>,
  check: (domain: FailureDomain, count: DomainCount, limit: number) => Blocker | null,
): Blocker[] {
  return FAILURE_DOMAINS.flatMap((domain) => {
    const limit = limits[domain];
    const count = places[domain].get(node[domain]) ?? { nodes: 0, online: 0, disrupted: 0 };
    const blocker = limit === null ? null : check(domain, count, limit);
    return blocker === null ? [] : [blocker];
  });
}
