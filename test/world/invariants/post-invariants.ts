import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { Action, Episode } from "../../../src/model/remediation/episode.ts";
import { isDown, isLost } from "../../../src/policy/episodes/episode-states.ts";
import { isWithin } from "../../../src/policy/guards/time-window.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import { clockSkewAt } from "../../../src/simulator/http/faults.ts";
import {
  failuresOf,
  isDisruptedByUs,
  lostNodes,
  nodesOfShare,
  type PostAttempt,
  type SimulationParts,
  wasRejected,
} from "../daemon/simulation-parts.ts";
import { inventoryTrustInvariant } from "./trust-invariant.ts";

/** Returns how a POST violates the invariant, or null if it does not. */
export type PostInvariant = (post: PostAttempt, parts: SimulationParts) => string | null;

/** Allowed time between a decision and its POST, and difference between two clocks. */
const TOLERANCE_MS = 30 * SECOND_MS;
/** Error of a clock that was set by a Date header at each of two starts. */
const DATE_PRECISION_MS = 2 * SECOND_MS;
/** The longest time between the read before an action and the POST, which may wait for a rate limit. */
const READ_AGE_MS_MAX = 31 * SECOND_MS;

/** Invariants of every POST, derived from the state of the service and the committed journal. */
export const postInvariants: Readonly<Record<string, PostInvariant>> = {
  "not journaled": ({ action, kind, body, at }) => {
    if (action === null) return 'the journal has no row in the state "posting"';
    if (action.dryRun) return "the action is a dry run";
    if (action.request.kind !== kind) return `the journal has ${action.request.kind}`;
    if (action.sentAt === null) return "the journal has no sending time";
    return kind === "reboot" && JSON.parse(body).force !== (action.request as { force?: boolean }).force
      ? `at ${at} the request body is ${body}`
      : null;
  },
  "sent twice": ({ action, node }, parts) => {
    if (action === null) return null;
    const same = (parts.postsOfStep.get(`${action.episode}/${action.step}`) ?? []).filter((post) => !wasRejected(post));
    if (same.length > 0) return `this step was sent already, as ${same[0]!.action?.id}`;
    const { actions, inFlight } = parts.recordedState;
    const other = [...inFlight].map((id) => actions.get(id)!).find((each) => each.node === node && each !== action);
    return other === undefined ? null : `${other.id} is not verified yet`;
  },
  "not enforced": ({ action }, { recordedState, config }) => {
    const spec = config.policies.find(({ name }) => name === action?.policy);
    if (spec === undefined) return "the action has no policy";
    if (config.safety.mode === "dry_run" || spec.mode === "dry_run") return "the policy is in dry_run";
    if (recordedState.facts.get(`remediation.fallback.${spec.name}`) === action?.fingerprint)
      return "the policy has fallen back to dry_run";
    const needsApproval = config.safety.mode === "approve" || spec.mode === "approve";
    return needsApproval && !recordedState.approved.has(action!.id) ? "the action is not approved" : null;
  },
  rejected: ({ action }, { recordedState: { actions } }) => {
    const rejected = [...actions.values()].find(
      ({ state, episode, step }) => state === "rejected" && episode === action?.episode && step === action.step,
    );
    return rejected === undefined ? null : `an operator rejected the step (${rejected.id})`;
  },
  "given up": ({ action }, { recordedState: { givenUp } }) =>
    action !== null && givenUp.has(action.episode) ? `${action.episode} was given up after too many 429s` : null,
  "approval expired": ({ action, at }, { approvals, config, machine }) => {
    const approvedAt = approvals.get(action?.id ?? "");
    const { approvalTtlMs } = config.safety;
    // A suspension of up to a minute is not noticed.
    const toleranceMs = machine.resumedAt() > (approvedAt ?? 0) ? TOLERANCE_MS + MINUTE_MS : TOLERANCE_MS;
    if (approvedAt === undefined || at - approvedAt <= approvalTtlMs + toleranceMs) return null;
    return `approved ${(at - approvedAt) / MINUTE_MS} min ago; approvals expire after ${approvalTtlMs / MINUTE_MS} min`;
  },
  "outside the window": ({ action }, parts) => {
    const spec = policyOf(action, parts);
    if (spec === undefined || spec.windows.length === 0) return null;
    const { clock, serviceNow, config } = parts;
    const isOpen = (at: number) =>
      config.time_intervals.some((interval) => spec.windows.includes(interval.name) && isWithin(interval, at));
    // The window must be open on both clocks. At its edges the decision may have been made earlier.
    const isOpenAbout = (at: number) => isOpen(at) || isOpen(at - TOLERANCE_MS) || isOpen(at + TOLERANCE_MS);
    const skewed = serviceNow() + clockSkewAt(parts.service.network.faultSchedule, serviceNow());
    return isOpenAbout(clock.now()) && isOpenAbout(skewed) ? null : `${spec.windows} is closed`;
  },
  "protected or not matched": ({ action, node }, parts) => {
    const { country, region } = findNode(parts.service.network.fleet, node) ?? { country: null, region: null };
    const [, protectedCountry] = /^node\.country == "(.*)"$/.exec(parts.config.safety.protected ?? "") ?? [];
    const [, excludedRegion] = /^node\.region != "(.*)"$/.exec(policyOf(action, parts)?.match ?? "") ?? [];
    if (protectedCountry !== undefined && protectedCountry === country) return `nodes in ${country} are protected`;
    return excludedRegion !== undefined && excludedRegion === region
      ? `the policy does not match nodes in ${region}`
      : null;
  },
  "condition not proven": ({ action, node }, { recordedState, observations, config }) => {
    const spec = config.policies.find(({ name }) => name === action?.policy);
    const episode = recordedState.episodes.get(action?.episode ?? "");
    if (spec?.when !== 'node.status == "offline"' || episode === undefined || episode.acted > 0) return null;
    const offlineMs = observations.offlineMs(node);
    if (offlineMs >= spec.forMs - SECOND_MS || episode.step > 0) return null;
    return `observed offline for ${offlineMs / SECOND_MS} s; the policy requires ${spec.forMs / SECOND_MS} s`;
  },
  "no fresh read": ({ read, at }) => {
    if (read === null) return "the node was not read";
    return at - read.at > READ_AGE_MS_MAX ? `the node was read ${at - read.at} ms before` : null;
  },
  "healthy node": ({ truth, read, action, node }, parts) => {
    if (truth.isFailing || read === null || read.isFailing) return null;
    // A read of a node does not show its sessions.
    const spec = parts.config.policies.find(({ name }) => name === action?.policy);
    if (spec?.when.includes("sessions.") && failuresOf(parts, node) > 0) return null;
    return `the node has no failure and no recently failed sessions; its status is ${truth.status}`;
  },
  "operator's quarantine, maintenance or hold": ({ truth, read, node, action }, { recordedState }) => {
    // The service may show a quarantined node as offline.
    const isShown = read?.status !== "offline";
    if (isShown && read?.isWithOperator && truth.isWithOperator) return "an operator has quarantined the node";
    if (read?.status === "maintenance") return "the node is in maintenance";
    const holds = recordedState.holdsOf(node).filter(({ policy }) => policy === null || policy === action?.policy);
    const hold = holds.find(({ until }) => until === null || until > (action?.sentAt ?? 0));
    return hold === undefined ? null : `${hold.kind}: ${hold.reason}`;
  },
  paused: ({ action }, { recordedState }) => {
    const paused = recordedState.facts.get("remediation.pause") ?? "null";
    const { until = null } = (JSON.parse(paused) ?? {}) as { until?: number | null };
    const isExpired = until !== null && until <= (action?.sentAt ?? 0);
    return paused === "null" || isExpired ? null : paused;
  },
  "untrusted inventory": inventoryTrustInvariant,
  max_in_flight(_post, { recordedState, config }) {
    const { actions, episodes, inFlight } = recordedState;
    const counted = [...inFlight].filter((id) => episodes.get(actions.get(id)!.episode)?.state !== "suspended");
    const { maxInFlight } = config.safety;
    return counted.length > maxInFlight ? `${counted.length} actions are in flight, limit ${maxInFlight}` : null;
  },
  max_disrupted(post, parts) {
    const limit = disruptedMax(parts);
    const known = disrupted(post, parts).length;
    return known > limit ? `${known} nodes are disrupted, limit ${limit}` : null;
  },
  "max_disrupted (actual state)": (post, parts) => {
    const limit = disruptedMax(parts);
    const actual = actuallyDisruptedNodes(post, parts).length;
    return actual > limit ? `${actual} nodes are actually disrupted, limit ${limit}` : null;
  },
  max_disrupted_per(post, parts) {
    const { region: limit } = parts.config.safety.maxDisruptedPer;
    if (limit === null) return null;
    const known = disrupted(post, parts).filter(({ region }) => region === post.region).length;
    const actual = actuallyDisruptedNodes(post, parts).filter(({ region }) => region === post.region).length;
    return Math.max(known, actual) > limit
      ? `${known} nodes (actually ${actual}) in ${post.region} are disrupted, limit ${limit}`
      : null;
  },
  min_online({ node, region }, { process: daemonProcess, config }) {
    const { region: limit } = config.safety.minOnlinePer;
    const fleet = daemonProcess?.snapshot()?.fleet;
    if (limit === null || fleet === undefined) return null;
    const online = fleet.ids.flatMap((id, slot) =>
      NODE_STATUSES[fleet.status[slot]!] === "online" && fleet.locations[fleet.locationIndex[slot]!]!.region === region
        ? [id]
        : [],
    );
    const others = online.filter((id) => id !== node).length;
    return online.includes(node) && others < limit
      ? `${others} nodes in ${region} stay online, minimum ${limit}`
      : null;
  },
  max_actions({ steppedAt }, { posts, config }) {
    const { amount, perMs } = config.safety.maxActions;
    const since = steppedAt - perMs + DATE_PRECISION_MS;
    let sent = 1;
    for (let index = posts.length - 1; index >= 0 && posts[index]!.steppedAt > since; index--) {
      if (!wasRejected(posts[index]!)) sent++;
    }
    return sent > amount ? `action ${sent} within ${perMs / MINUTE_MS} min, limit ${amount}` : null;
  },
  storm(_post, { process: daemonProcess, config }) {
    const fleet = daemonProcess?.snapshot()?.fleet;
    if (fleet === undefined) return null;
    const unhealthy = [...fleet.status].filter((status, slot) => {
      return fleet.ids[slot] !== "" && (NODE_STATUSES[status] === "offline" || NODE_STATUSES[status] === "unknown");
    }).length;
    const limit = nodesOfShare(config.safety.maxUnhealthy.share, fleet.count);
    return unhealthy > limit ? `${unhealthy} of ${fleet.count} nodes are unhealthy; the storm limit is ${limit}` : null;
  },
  breaker: (_post, { breakerModel }) =>
    breakerModel.isOpen() ? "too many nodes fired within `breaker.within`, and the breaker was not reset" : null,
  "region outage": (post, { regionOutages }) => regionOutages.violationOf(post),
  cooldown({ action }, parts) {
    const { recordedState, config } = parts;
    const episode = recordedState.episodes.get(action?.episode ?? "");
    if (episode === undefined || episode.acted > 0) return null;
    const since = action!.sentAt! - lastAttemptOf(parts, episode);
    return since < config.safety.cooldownMs ? `the node's last episode ended ${since / SECOND_MS} s ago` : null;
  },
};

const policyOf = (action: Action | null, { config }: SimulationParts): PolicySpec | undefined =>
  config.policies.find(({ name }) => name === action?.policy);

/** Returns the limit on disrupted nodes, for the actual or the known fleet, whichever is larger. */
function disruptedMax(parts: SimulationParts): number {
  const { share, amount } = parts.config.safety.maxDisrupted;
  const { recordedState, service, process: daemonProcess } = parts;
  const actual = service.network.fleet.nodes.length + lostNodes(parts).length;
  // A node that left by itself after an action counts as lost: the daemon can't tell why it left.
  const open = [...recordedState.open].map((id) => recordedState.episodes.get(id)!);
  const lost = new Set(open.filter(isLost).map(({ node }) => node));
  const known = (daemonProcess?.snapshot()?.fleet.count ?? 0) + lost.size;
  return Math.min(amount, nodesOfShare(share, Math.max(actual, known)));
}

interface Disrupted {
  readonly node: string;
  readonly region: string;
}

/** Returns the disrupted nodes according to the journal, including the node of the POST. */
function disrupted({ node, region }: PostAttempt, parts: SimulationParts): readonly Disrupted[] {
  const { recordedState } = parts;
  const held = [...recordedState.open]
    .map((id) => recordedState.episodes.get(id)!)
    .filter((episode) => {
      const { id, state, quarantine } = episode;
      if (state === "suspended") return isLost(episode);
      return state === "acting" || isDown(episode) || (quarantine !== null && !wasOffline(parts, id));
    });
  // Several policies may have acted on one node.
  const nodes = new Map<string, Disrupted>(held.map((episode) => [episode.node, episode]));
  nodes.set(node, { node, region });
  return [...nodes.values()];
}

/** Returns the actually disrupted nodes, including the node of the POST and nodes lost after a reboot. */
function actuallyDisruptedNodes({ node, region }: PostAttempt, parts: SimulationParts): readonly Disrupted[] {
  for (const [id, post] of parts.disruptedByUs)
    if (!isDisruptedByUs(parts, post) || isQuarantineOfOffline(parts, post)) parts.disruptedByUs.delete(id);
  // One that was down before the reboot counts from when it leaves the list.
  const listed = new Set(parts.process?.snapshot()?.fleet.ids);
  const lost = lostNodes(parts).filter((post) => post.truth.status !== "offline" || !listed.has(post.node));
  const all = new Map<string, Disrupted>([...lost, ...parts.disruptedByUs.values()].map((each) => [each.node, each]));
  all.set(node, { node, region });
  return [...all.values()];
}

/** Returns whether the node was offline at each action of the episode: a quarantine does not disrupt it then. */
function wasOffline({ posts }: SimulationParts, episode: string): boolean {
  return posts.filter(({ action }) => action?.episode === episode).every(({ truth }) => truth.status === "offline");
}

const isQuarantineOfOffline = (parts: SimulationParts, { kind, action }: PostAttempt): boolean =>
  kind === "quarantine" && action !== null && wasOffline(parts, action.episode);

/** Returns when the node's last other episode with an action or a give-up ended, or -Infinity if there was none. */
function lastAttemptOf({ recordedState, service }: SimulationParts, { node, id }: Episode): number {
  let last = Number.NEGATIVE_INFINITY;
  // Before that the id belonged to another node.
  const createdAt = findNode(service.network.fleet, node)?.createdAt ?? Number.NEGATIVE_INFINITY;
  for (const episode of recordedState.episodes.values()) {
    const hasActed = episode.acted > 0 || episode.state === "given_up";
    const isSameNode = episode.node === node && episode.openedAt >= createdAt;
    if (isSameNode && episode.id !== id && !episode.dryRun && hasActed) last = Math.max(last, episode.closedAt ?? 0);
  }
  return last;
}
