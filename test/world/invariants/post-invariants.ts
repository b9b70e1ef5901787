import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import type { Action, Episode } from "../../../src/model/remediation/episode.ts";
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

/** Why a POST breaks a law; null: it doesn't. */
export type PostInvariant = (post: PostAttempt, parts: SimulationParts) => string | null;

/** Between a decision and its POST, or between two clocks. */
const TOLERANCE_MS = 30 * SECOND_MS;
/** Between the fresh read and the POST, which may wait for a rate limit. */
const READ_AGE_MS_MAX = 31 * SECOND_MS;

/** What holds for every POST. Each law is worked out from what the service knows and saw, and from what the store holds. */
export const postInvariants: Readonly<Record<string, PostInvariant>> = {
  journalled({ action, kind, body, at }) {
    if (action === null) return "the journal has no row that says that it is being sent";
    if (action.shadow) return "it is a dry run";
    if (action.request.kind !== kind) return `the journal says ${action.request.kind}`;
    if (action.sentAt === null) return "the journal has no time of it";
    return kind === "reboot" && JSON.parse(body).force !== (action.request as { force?: boolean }).force
      ? `at ${at} the body says ${body}`
      : null;
  },
  once({ action, node }, parts) {
    if (action === null) return null;
    const same = (parts.postsOfStep.get(`${action.episode}/${action.step}`) ?? []).filter((post) => !wasRejected(post));
    if (same.length > 0) return `this step was sent already, as ${same[0]!.action?.id}`;
    const { actions, inFlight: underWay } = parts.recordedState;
    const other = [...underWay].map((id) => actions.get(id)!).find((each) => each.node === node && each !== action);
    return other === undefined ? null : `${other.id} is not yet judged`;
  },
  enforced({ action }, { recordedState, rules }) {
    const rule = rules.policies.find(({ name }) => name === action?.policy);
    if (rule === undefined) return "it has no policy";
    if (rules.safety.mode === "dry_run" || rule.mode === "dry_run") return "the policy is in dry_run";
    if (recordedState.facts.get(`warden.fallen.${rule.name}`) === action?.fingerprint)
      return "the policy heals too little";
    const mustAsk = rules.safety.mode === "approve" || rule.mode === "approve";
    return mustAsk && !recordedState.approved.has(action!.id) ? "nobody approved it" : null;
  },
  "approval expired": ({ action, at }, { approvals, rules }) => {
    const approvedAt = approvals.get(action?.id ?? "");
    const { approvalTtlMs } = rules.safety;
    if (approvedAt === undefined || at - approvedAt <= approvalTtlMs + TOLERANCE_MS) return null;
    return `it was approved ${(at - approvedAt) / MINUTE_MS} min before, and approvals expire after ${approvalTtlMs / MINUTE_MS}`;
  },
  window: ({ action }, parts) => {
    const rule = ruleOf(action, parts);
    if (rule === undefined || rule.windows.length === 0) return null;
    const { clock, serviceNow, rules } = parts;
    const isOpen = (at: number) =>
      rules.intervals.some((each) => rule.windows.includes(each.name) && isWithin(each, at));
    // Both clocks must say so; at an edge the decision may have been made a moment before.
    const isOpenAbout = (at: number) => isOpen(at) || isOpen(at - TOLERANCE_MS) || isOpen(at + TOLERANCE_MS);
    const skewed = serviceNow() + clockSkewAt(parts.service.world.faultSchedule, serviceNow());
    return isOpenAbout(clock.now()) && isOpenAbout(skewed) ? null : `${rule.windows} is closed`;
  },
  "protected or not matched": ({ action, node }, parts) => {
    const { country, region } = findNode(parts.service.world.fleet, node) ?? { country: null, region: null };
    const [, spared] = /^node\.country == "(.*)"$/.exec(parts.rules.safety.protected ?? "") ?? [];
    const [, excluded] = /^node\.region != "(.*)"$/.exec(ruleOf(action, parts)?.match ?? "") ?? [];
    if (spared !== undefined && spared === country) return `nodes of ${spared} are protected`;
    return excluded !== undefined && excluded === region ? `the policy is not about nodes of ${excluded}` : null;
  },
  "condition not proven": ({ action, node }, { recordedState, observations: seen, rules }) => {
    const rule = rules.policies.find(({ name }) => name === action?.policy);
    const episode = recordedState.episodes.get(action?.episode ?? "");
    if (rule?.when !== 'node.status == "offline"' || episode === undefined || episode.acted > 0) return null;
    const provenMs = seen.offlineMs(node);
    if (provenMs >= rule.forMs - SECOND_MS || episode.step > 0) return null;
    return `it was shown offline for ${provenMs / SECOND_MS} s, and the policy asks for ${rule.forMs / SECOND_MS}`;
  },
  "fresh read": ({ read, at }) => {
    if (read === null) return "the node was not read before";
    return at - read.at > READ_AGE_MS_MAX ? `the node was read ${at - read.at} ms before` : null;
  },
  "healthy node": ({ truth, read, action, node }, parts) => {
    if (truth.isFailing || read === null || read.isFailing) return null;
    // No read of a node shows its sessions: they were walked just before.
    const rule = parts.rules.policies.find(({ name }) => name === action?.policy);
    if (rule?.when.includes("sessions.") && failuresOf(parts, node) > 0) return null;
    return `nothing ails it, none of its sessions has just failed, and it is ${truth.status}`;
  },
  "others' hands": ({ truth, read, node, action }, { recordedState }) => {
    if (read?.isWithOperator && truth.isWithOperator) return "a person has it in quarantine";
    if (read?.status === "maintenance") return "it is in maintenance";
    const holds = recordedState.holdsOf(node).filter(({ policy }) => policy === null || policy === action?.policy);
    const hold = holds.find(({ until }) => until === null || until > (action?.sentAt ?? 0));
    return hold === undefined ? null : `${hold.kind}: ${hold.reason}`;
  },
  paused: (_post, { recordedState }) => {
    const paused = recordedState.facts.get("warden.paused") ?? "null";
    return paused === "null" ? null : paused;
  },
  sight: inventoryTrustInvariant,
  max_in_flight(_post, { recordedState, rules }) {
    const { actions, episodes, inFlight: underWay } = recordedState;
    const live = [...underWay].filter((id) => episodes.get(actions.get(id)!.episode)?.state !== "suspended");
    const { maxInFlight } = rules.safety;
    return live.length > maxInFlight ? `${live.length} are under way, of ${maxInFlight}` : null;
  },
  max_disrupted(post, parts) {
    const limit = disruptedMax(parts);
    const known = disrupted(post, parts).length;
    return known > limit ? `${known} nodes are disrupted, of ${limit}` : null;
  },
  "max_disrupted, truly": (post, parts) => {
    const limit = disruptedMax(parts);
    const actuallyDisrupted = actuallyDisruptedNodes(post, parts).length;
    return actuallyDisrupted > limit ? `${actuallyDisrupted} nodes truly are disrupted, of ${limit}` : null;
  },
  max_disrupted_per(post, parts) {
    const { region: limit } = parts.rules.safety.maxDisruptedPer;
    if (limit === null) return null;
    const known = disrupted(post, parts).filter(({ region }) => region === post.region).length;
    const actuallyDisrupted = actuallyDisruptedNodes(post, parts).filter(({ region }) => region === post.region).length;
    const most = Math.max(known, actuallyDisrupted);
    return most > limit
      ? `${known} (truly ${actuallyDisrupted}) nodes of ${post.region} are disrupted, of ${limit}`
      : null;
  },
  min_online({ node, region }, { process: daemonProcess, rules }) {
    const { region: limit } = rules.safety.minOnlinePer;
    const fleet = daemonProcess?.snapshot()?.fleet;
    if (limit === null || fleet === undefined) return null;
    const online = fleet.ids.flatMap((id, slot) =>
      NODE_STATUSES[fleet.status[slot]!] === "online" && fleet.locations[fleet.locationIndex[slot]!]!.region === region
        ? [id]
        : [],
    );
    const others = online.filter((id) => id !== node).length;
    return online.includes(node) && others < limit ? `${others} nodes of ${region} stay online, of ${limit}` : null;
  },
  max_actions({ steppedAt }, { posts, rules }) {
    const { amount, perMs } = rules.safety.maxActions;
    let sent = 1;
    for (let index = posts.length - 1; index >= 0 && posts[index]!.steppedAt > steppedAt - perMs; index--) {
      if (!wasRejected(posts[index]!)) sent++;
    }
    return sent > amount ? `it is the ${sent}th within ${perMs / MINUTE_MS} min, of ${amount}` : null;
  },
  storm(_post, { process: daemonProcess, rules }) {
    const fleet = daemonProcess?.snapshot()?.fleet;
    if (fleet === undefined) return null;
    const off = [...fleet.status].filter((status, slot) => {
      return fleet.ids[slot] !== "" && (NODE_STATUSES[status] === "offline" || NODE_STATUSES[status] === "unknown");
    }).length;
    const limit = nodesOfShare(rules.safety.maxUnhealthy.share, fleet.count);
    return off > limit ? `${off} of ${fleet.count} nodes are offline, and ${limit} are a storm` : null;
  },
  breaker: (_post, { breakerModel }) =>
    breakerModel.isOpen() ? "too many nodes fired within its time, and nobody has reset it since" : null,
  cooldown({ action }, { recordedState, rules }) {
    const episode = recordedState.episodes.get(action?.episode ?? "");
    if (episode === undefined || episode.acted > 0) return null;
    const since = action!.sentAt! - lastAttemptOf(recordedState.episodes, episode);
    return since < rules.safety.cooldownMs ? `its last episode ended ${since / SECOND_MS} s ago` : null;
  },
};

const ruleOf = (action: Action | null, { rules }: SimulationParts): PolicyRule | undefined =>
  rules.policies.find(({ name }) => name === action?.policy);

/** The fleet changes while it is walked: the larger number of nodes counts. */
function disruptedMax(parts: SimulationParts): number {
  const { share, amount } = parts.rules.safety.maxDisrupted;
  const nodes = Math.max(parts.service.world.fleet.nodes.length, parts.process?.snapshot()?.fleet.count ?? 0);
  return Math.min(amount, nodesOfShare(share, nodes + lostNodes(parts).length));
}

interface Disrupted {
  readonly node: string;
  readonly region: string;
}

/** Nodes that are disrupted by the journal, with the one that is sent to. */
function disrupted({ node, region }: PostAttempt, parts: SimulationParts): readonly Disrupted[] {
  const { recordedState } = parts;
  const held = [...recordedState.open]
    .map((id) => recordedState.episodes.get(id)!)
    .filter(({ id, state, quarantine, acted, unlistedAt }) => {
      if (state === "suspended") return acted > 0 && unlistedAt != null;
      return state === "acting" || (quarantine !== null && !wasOffline(parts, id));
    });
  return [...held.filter((episode) => episode.node !== node), { node, region }];
}

/** The same by the service's own truth, nodes included that left the fleet with a reboot of ours. */
function actuallyDisruptedNodes({ node, region }: PostAttempt, parts: SimulationParts): readonly Disrupted[] {
  for (const [id, post] of parts.disruptedByUs)
    if (!isDisruptedByUs(parts, post) || isOfOffline(parts, post)) parts.disruptedByUs.delete(id);
  const all = new Map<string, Disrupted>(
    [...lostNodes(parts), ...parts.disruptedByUs.values()].map((each) => [each.node, each]),
  );
  all.set(node, { node, region });
  return [...all.values()];
}

/** Whether the node of an episode was offline when the first action of it was sent: a quarantine takes nothing away then. */
function wasOffline({ posts }: SimulationParts, episode: string): boolean {
  return posts.find(({ action }) => action?.episode === episode)?.truth.status === "offline";
}

const isOfOffline = (parts: SimulationParts, { kind, action }: PostAttempt): boolean =>
  kind === "quarantine" && action !== null && wasOffline(parts, action.episode);

/** When the last episode of a node ended in which something was done. */
function lastAttemptOf(episodes: ReadonlyMap<string, Episode>, { node, id }: Episode): number {
  let last = Number.NEGATIVE_INFINITY;
  for (const episode of episodes.values()) {
    const isTried = episode.acted > 0 || episode.state === "given_up";
    if (episode.node === node && episode.id !== id && !episode.shadow && isTried)
      last = Math.max(last, episode.closedAt ?? 0);
  }
  return last;
}
