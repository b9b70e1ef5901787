import { formatDuration, formatSecondsLeft } from "../../base/duration.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../../model/policy/failure-domain.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { Candidate, Guard } from "../candidate.ts";
import type { DomainCount } from "../facts.ts";
import { findIncident, INCIDENT_MS_MAX, type Incident, nodesToContinue } from "./correlated-failure.ts";
import { incidentNodesMin } from "./limits.ts";

/** Nodes or actions that a detail names; the rest is only counted. */
const NAMES_MAX = 3;

/**
 * Too much of the fleet is unhealthy at once: what ails it is not the single node. The storm is as old as the last
 * round; what has come to be seen since counts as well.
 */
export const stormGuard: Guard = (_candidate, { storm, fleetCounts, limits, now }) => {
  if (fleetCounts.unhealthy > limits.maxUnhealthy) {
    const detail = `${fleetCounts.unhealthy} of ${fleetCounts.nodes} nodes are unhealthy; the limit is ${limits.maxUnhealthy} (storm)`;
    return [{ reason: "storm", detail }];
  }
  if (storm === null) return [];
  return [
    { reason: "storm_cooldown", detail: `the storm is over; held for another ${formatSecondsLeft(storm.until - now)}` },
  ];
};

/** Nodes of one place that went bad together are one incident, which no action on a single node ends. */
export const correlatedGuard: Guard = ({ node }, { incidents, safety, fleetCounts, now }) => {
  const incident = findIncident(incidents, node.id);
  if (incident === null) return [];
  const { by } = safety.correlated;
  const what = `${incident.nodes.size} nodes of the ${by} ${incident.place || "(none)"} failed together: treated as one incident`;
  return [{ reason: "correlated", detail: `${what}; ${endOf(incident)}` }];

  function endOf({ place, to, until }: Incident): string {
    const latest = new Date(to + INCIDENT_MS_MAX).toISOString();
    if (until !== null)
      return `it is over, and ends in ${formatSecondsLeft(Math.min(until, to + INCIDENT_MS_MAX) - now)}`;
    const size = nodesToContinue(incident!, incidentNodesMin(safety, fleetCounts.domains[by].get(place)?.nodes ?? 0));
    const cooldown = formatDuration(safety.stormCooldownMs);
    return `it ends ${cooldown} after fewer than ${size} of them are unhealthy, at the latest at ${latest}`;
  }
};

/** The breaker is durable, and a person resets it. */
export const breakerGuard: Guard = (_candidate, { breaker }) =>
  breaker.open === null
    ? []
    : [
        {
          reason: "breaker",
          detail: `it opened at ${new Date(breaker.open.openedAt).toISOString()} when ${breaker.open.nodes} nodes fired; reset-breaker closes it`,
        },
      ];

/** Actions are verified before more are sent. */
export const inFlightGuard: Guard = ({ node }, { inFlight, limits }) => {
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
};

/** Limits how many nodes our actions make unavailable at once. */
export const disruptedGuard: Guard = ({ node }, { fleetCounts, limits }) => {
  const after = fleetCounts.disrupted.size + (fleetCounts.disrupted.has(node.id) ? 0 : 1);
  if (after <= limits.maxDisrupted) return [];
  const detail = `${fleetCounts.disrupted.size} nodes are disrupted, of ${limits.maxDisrupted} at most`;
  return [{ reason: "disrupted", detail: `${detail}${describeLostNodes(fleetCounts.lost)}` }];
};

/** What a limit says of lost nodes among those that it counts. */
function describeLostNodes(lost: readonly Episode[]): string {
  if (lost.length === 0) return "";
  const names = lost.slice(0, NAMES_MAX).map(({ node }) => node);
  const more = lost.length > NAMES_MAX ? ", …" : "";
  return `; ${lost.length} of them left the list after an action (${names.join(", ")}${more}) and count until they return, or until accept-inventory`;
}

/** The same in one region or country. */
export const disruptedDomainGuard: Guard = (candidate, facts) => {
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
};

/** An online node is not taken out where too few would stay. One that is offline takes nothing away. */
export const minOnlineGuard: Guard = (candidate, { fleetCounts, safety }) => {
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
};

/** How many actions may be sent in the time that is counted. */
export const maxActionsGuard: Guard = (
  _candidate,
  { sentAtTimes: actedAt, assumedActionCount: assumedActions, limits, safety, now },
) => {
  const { maxActions } = limits;
  if (actedAt.length < maxActions) return [];
  const { perMs } = safety.maxActions;
  const frees =
    maxActions === 0 ? "" : `; one is free in ${formatSecondsLeft(hasRoomAt(actedAt, maxActions) + perMs - now)}`;
  const assumed = assumedActions === 0 ? "" : `; ${assumedActions} of them are assumed, because the journal is new`;
  const detail = `${actedAt.length} actions within ${formatDuration(perMs)}, of ${maxActions} at most${frees}${assumed}`;
  return [{ reason: "max_actions", detail }];
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
