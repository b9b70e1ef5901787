import { formatDuration, formatSecondsLeft } from "../../base/duration.ts";
import { formatTime } from "../../model/time.ts";
import { findIncident, INCIDENT_MS_MAX, nodesToContinue } from "./correlated-failure.ts";
import { incidentNodesMin } from "./effective-limits.ts";
import type { GuardRow } from "./guard-row.ts";

/** Holds every node while too many nodes are unhealthy at once, including nodes observed since the last evaluation. */
export const stormGuard: GuardRow = {
  reasons: {
    storm: {
      counts: "nodes that are offline, of unknown status, firing, disrupted or lost",
      condition: "there are more than `safety.max_unhealthy`",
      ends: "automatically, once the number of unhealthy nodes has fallen back to the limit; then `storm_cooldown` holds",
      operatorAction: "find the common cause: network, service or upstream",
      policyWide: true,
      preventsEpisode: true,
    },
    storm_cooldown: {
      counts: "the time since the storm",
      condition: "it is shorter than `safety.storm_cooldown`",
      ends: "automatically, after `safety.storm_cooldown`",
      policyWide: true,
      alert: null,
    },
  },
  check: (_candidate, { storm, fleetCounts, limits, now }) => {
    if (fleetCounts.unhealthy > limits.maxUnhealthy) {
      const verb = fleetCounts.unhealthy === 1 ? "is" : "are";
      const detail = `${fleetCounts.unhealthy} of ${fleetCounts.nodes} nodes ${verb} unhealthy; the limit is ${limits.maxUnhealthy} (storm)`;
      return [{ reason: "storm", detail }];
    }
    if (storm === null) return [];
    return [
      {
        reason: "storm_cooldown",
        detail: `the storm is over; held for another ${formatSecondsLeft(storm.until - now)}`,
      },
    ];
  },
};

/** Holds nodes of one failure domain that failed together. */
export const correlatedGuard: GuardRow = {
  reasons: {
    correlated: {
      counts: "nodes of one region or country that became unhealthy within `safety.correlated.within`",
      condition: "there are at least `nodes` or `percent` of `safety.correlated`, whichever is fewer",
      ends: "automatically, `safety.storm_cooldown` after fewer than half of its nodes, or fewer than the minimum, are unhealthy; 6 h after its last node failed at the latest",
      operatorAction: "find the common cause in that region or country",
      preventsEpisode: true,
    },
  },
  check: ({ node }, { incidents, safety, fleetCounts, now }) => {
    const incident = findIncident(incidents, node.id);
    if (incident === null) return [];
    const { by } = safety.correlated;
    const { place, to, until, nodes } = incident;
    const latestEnd = to + INCIDENT_MS_MAX;
    const nodesMin = nodesToContinue(
      incident,
      incidentNodesMin(safety, fleetCounts.domains[by].get(place)?.nodes ?? 0),
    );
    const end =
      until === null
        ? `it ends ${formatDuration(safety.stormCooldownMs)} after fewer than ${nodesMin} of them are unhealthy, and no later than ${formatTime(latestEnd)}`
        : `it is over, and ends in ${formatSecondsLeft(Math.min(until, latestEnd) - now)}`;
    const summary = `${nodes.size} nodes of the ${by} ${place || "(none)"} failed together: treated as one incident`;
    return [{ reason: "correlated", detail: `${summary}; ${end}` }];
  },
};

/** Holds every node while the circuit breaker is open. It stays open across restarts until an operator resets it. */
export const breakerGuard: GuardRow = {
  reasons: {
    breaker: {
      counts: "nodes that began to fire, or were lost, within `safety.breaker.within`",
      condition: "there were more than `amount` or `percent` of `safety.breaker`, whichever is more",
      ends: "with `reset-breaker`",
      operatorAction: "find out why so many nodes fired, then `reset-breaker`",
      alert: "ProxywardenBreakerOpen",
      policyWide: true,
    },
  },
  check: (_candidate, { breaker }) =>
    breaker.open === null
      ? []
      : [
          {
            reason: "breaker",
            detail: `it opened at ${formatTime(breaker.open.openedAt)} when ${breaker.open.nodes} nodes fired; reset-breaker closes it`,
          },
        ],
};

/** The guards that hold many nodes because many are unhealthy. */
export const FLEET_GUARDS: readonly GuardRow[] = [stormGuard, correlatedGuard, breakerGuard];
