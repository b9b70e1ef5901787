import { countNoun } from "../../base/count-noun.ts";
import { formatDuration, formatSecondsLeft } from "../../base/duration.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../../model/node.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { DomainCount } from "../facts.ts";
import type { Candidate, GuardRow } from "./guard.ts";

/** Maximum number of nodes or actions that a detail names. The rest are only counted. */
const NAMES_MAX = 3;

/** Limits how many actions are sent and not yet verified. */
export const inFlightGuard: GuardRow = {
  reasons: {
    in_flight: {
      counts: "actions that are sent and not yet verified, including those of lost nodes",
      condition: "there are `safety.max_in_flight`",
      ends: "automatically, once one is verified or its time is up",
      policyWide: true,
    },
  },
  check: ({ node }, { inFlight, nameOf, safety: { maxInFlight } }) => {
    // An action in flight on the node itself belongs to its episode and only blocks other nodes.
    const others = inFlight.filter((action) => action.node !== node.id);
    if (others.length < maxInFlight) return [];
    const names = others.slice(0, NAMES_MAX).map((action) => `${action.id} on ${nameOf(action.node)}`);
    const rest = others.length - names.length;
    const listed = names.length === 0 ? "" : `: ${names.join(", ")}${rest === 0 ? "" : ` and ${rest} more`}`;
    return [
      {
        reason: "in_flight",
        detail: `${others.length} ${others.length === 1 ? "action is" : "actions are"} in flight, not yet verified; the limit is ${maxInFlight}${listed}`,
      },
    ];
  },
};

/** Limits how many nodes our actions make unavailable at the same time. */
export const disruptedGuard: GuardRow = {
  reasons: {
    disrupted: {
      counts:
        "nodes that our actions make unavailable: rebooting, disconnected, down after an action, in our quarantine (unless they were offline before it), or lost",
      condition: "there would be more than `amount` or `percent` of `safety.max_disrupted`, whichever is fewer",
      ends: "automatically, once one of them is available again; for lost nodes also with `accept-inventory`",
      operatorAction: "`accept-inventory` if the lost nodes will not come back",
      policyWide: true,
    },
  },
  check: ({ node }, { fleetCounts, limits }) => {
    const after = fleetCounts.disrupted.size + (fleetCounts.disrupted.has(node.id) ? 0 : 1);
    if (after <= limits.maxDisrupted) return [];
    const detail = `${countOf(fleetCounts.disrupted.size)} disrupted; the limit is ${limits.maxDisrupted}`;
    return [{ reason: "disrupted", detail: `${detail}${describeLostNodes(fleetCounts.lost)}` }];
  },
};

const countOf = (nodes: number): string => `${nodes} ${nodes === 1 ? "node is" : "nodes are"}`;

/** Describes the lost nodes among those that a limit counts. */
function describeLostNodes(lost: readonly Episode[]): string {
  if (lost.length === 0) return "";
  const names = lost.slice(0, NAMES_MAX).map(({ node }) => node);
  const more = lost.length > NAMES_MAX ? ", …" : "";
  return `; ${lost.length} of them left the list or stayed down after an action (${names.join(", ")}${more}); such nodes count until they are available again or accept-inventory is run`;
}

/** Limits the disrupted nodes of a region or country. */
export const disruptedDomainGuard: GuardRow = {
  reasons: {
    disrupted_domain: {
      counts: "such nodes in the region or country of the node",
      condition: "there would be more than `safety.max_disrupted_per`",
      ends: "automatically, once one of them is available again; for lost nodes also with `accept-inventory`",
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
            detail: `${countOf(count.disrupted)} disrupted in the ${domain} ${candidate.node[domain] || "(none)"}; the limit is ${limit}${describeLostNodes(fleetCounts.lost.filter((each) => each[domain] === candidate.node[domain]))}`,
          },
    );
  },
};

/**
 * Keeps a minimum of online nodes in a region or country. An action on an offline node does not reduce their number.
 */
export const minOnlineGuard: GuardRow = {
  reasons: {
    min_online: {
      counts: "online nodes of the region or country",
      condition: "fewer than `safety.min_online_per` would stay online, and the node is online",
      ends: "automatically, once more nodes are online. The only node of a region or country is held while it is online",
      operatorAction: "if too few nodes exist, act manually or lower `safety.min_online_per`",
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
            detail: `${countNoun(Math.max(0, count.online - removed), "node")} of the ${domain} ${candidate.node[domain] || "(none)"} would stay online; the minimum is ${limit}`,
          },
    );
  },
};

/** Limits how many actions are sent within a period. */
export const maxActionsGuard: GuardRow = {
  reasons: {
    max_actions: {
      counts: "actions sent, of any kind: every POST that the service answered or may have received",
      condition: "there were `amount` within `per` of `safety.max_actions`",
      ends: "automatically, once fewer than `safety.max_actions.amount` were sent within `safety.max_actions.per`",
      policyWide: true,
    },
  },
  check: (_candidate, { sentAtTimes, assumedActionCount, safety, now }) => {
    const { amount, perMs } = safety.maxActions;
    if (sentAtTimes.length < amount) return [];
    const next =
      amount === 0 ? "" : `; the next in ${formatSecondsLeft(blockingSince(sentAtTimes, amount) + perMs - now)}`;
    const assumed =
      assumedActionCount === 0 ? "" : `; ${assumedActionCount} of them assumed because the journal is new`;
    const detail = `${countNoun(sentAtTimes.length, "action")} within ${formatDuration(perMs)}; the limit is ${amount}${next}${assumed}`;
    return [{ reason: "max_actions", detail }];
  },
};

/** Returns when the action was sent that must become too old to count before another action is allowed. */
const blockingSince = (sentAtTimes: readonly EpochMs[], limit: number): EpochMs =>
  sentAtTimes.toSorted((a, b) => a - b)[sentAtTimes.length - limit]!;

function checkDomains(
  { node }: Candidate,
  counts: Readonly<Record<FailureDomain, ReadonlyMap<string, DomainCount>>>,
  limits: Readonly<Record<FailureDomain, number | null>>,
  check: (domain: FailureDomain, count: DomainCount, limit: number) => Blocker | null,
): Blocker[] {
  return FAILURE_DOMAINS.flatMap((domain) => {
    const limit = limits[domain];
    const count = counts[domain].get(node[domain]) ?? { nodes: 0, online: 0, disrupted: 0 };
    const blocker = limit === null ? null : check(domain, count, limit);
    return blocker === null ? [] : [blocker];
  });
}
