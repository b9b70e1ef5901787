import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Episode } from "../../src/model/episode.ts";
import { NODE_STATUSES } from "../../src/model/node.ts";
import { sightLaw } from "./sightlaw.ts";
import { failuresOf, isUnderHand, type Post, type Stage, wasRefused, wholeNodes } from "./stage.ts";

/** Why a POST must not be; null: it may. */
export type Law = (post: Post, stage: Stage) => string | null;

/** Between the fresh read and the POST. */
const READ_MS_MAX = 10 * SECOND_MS;

/** What every POST must keep, each worked out anew from what the store has, what the service knows, and what was seen. */
export const laws: Readonly<Record<string, Law>> = {
  journalled({ action, kind, body, at }) {
    if (action === null) return "the journal has no row that says that it is being sent";
    if (action.shadow) return "it is a dry run";
    if (action.request.kind !== kind) return `the journal says ${action.request.kind}`;
    if (action.sentAt === null) return "the journal has no time of it";
    return kind === "reboot" && JSON.parse(body).force !== (action.request as { force?: boolean }).force
      ? `at ${at} the body says ${body}`
      : null;
  },
  once({ action, node }, stage) {
    if (action === null) return null;
    const same = (stage.postsOfStep.get(`${action.episode}/${action.step}`) ?? []).filter((post) => !wasRefused(post));
    if (same.length > 0) return `this step was sent already, as ${same[0]!.action?.id}`;
    const { actions, underWay } = stage.chronicle;
    const other = [...underWay].map((id) => actions.get(id)!).find((each) => each.node === node && each !== action);
    return other === undefined ? null : `${other.id} is not yet judged`;
  },
  enforced({ action }, { chronicle, rules }) {
    const rule = rules.policies.find(({ name }) => name === action?.policy);
    if (rule === undefined) return "it has no policy";
    if (rules.safety.mode === "dry_run" || rule.mode === "dry_run") return "the policy is in dry_run";
    if (chronicle.facts.get(`warden.fallen.${rule.name}`) === action?.fingerprint) return "the policy heals too little";
    const mustAsk = rules.safety.mode === "approve" || rule.mode === "approve";
    return mustAsk && !chronicle.approved.has(action!.id) ? "nobody approved it" : null;
  },
  "fresh read": ({ read, at }) => {
    if (read === null) return "the node was not read before";
    return at - read.at > READ_MS_MAX ? `the node was read ${at - read.at} ms before` : null;
  },
  "healthy node": ({ truth, read, action, node }, stage) => {
    if (truth.isIll || read === null || read.isIll) return null;
    // No read of a node shows its sessions: they were walked just before.
    const rule = stage.rules.policies.find(({ name }) => name === action?.policy);
    if (rule?.when.includes("sessions.") && failuresOf(stage, node) > 0) return null;
    return `nothing ails it, none of its sessions has just failed, and it is ${truth.status}`;
  },
  "others' hands": ({ truth, read, node, action }, { chronicle }) => {
    if (read?.isWithPeople && truth.isWithPeople) return "a person has it in quarantine";
    if (read?.status === "maintenance") return "it is in maintenance";
    const holds = chronicle.holdsOf(node).filter(({ policy }) => policy === null || policy === action?.policy);
    const hold = holds.find(({ until }) => until === null || until > (action?.sentAt ?? 0));
    return hold === undefined ? null : `${hold.kind}: ${hold.reason}`;
  },
  paused: (_post, { chronicle }) => {
    const paused = chronicle.facts.get("warden.paused") ?? "null";
    return paused === "null" ? null : paused;
  },
  sight: sightLaw,
  max_in_flight(_post, { chronicle, rules }) {
    const { actions, episodes, underWay } = chronicle;
    const live = [...underWay].filter((id) => episodes.get(actions.get(id)!.episode)?.state !== "suspended");
    const { maxInFlight } = rules.safety;
    return live.length > maxInFlight ? `${live.length} are under way, of ${maxInFlight}` : null;
  },
  max_disrupted(post, stage) {
    const limit = disruptedMax(stage);
    const known = disrupted(post, stage).length;
    return known > limit ? `${known} nodes are under our hand, of ${limit}` : null;
  },
  "max_disrupted, truly": (post, stage) => {
    const limit = disruptedMax(stage);
    const truly = trulyDisrupted(post, stage).length;
    return truly > limit ? `${truly} nodes truly are under our hand, of ${limit}` : null;
  },
  max_disrupted_per(post, stage) {
    const { region: limit } = stage.rules.safety.maxDisruptedPer;
    if (limit === null) return null;
    const known = disrupted(post, stage).filter(({ region }) => region === post.region).length;
    const truly = trulyDisrupted(post, stage).filter(({ region }) => region === post.region).length;
    const most = Math.max(known, truly);
    return most > limit ? `${known} (truly ${truly}) nodes of ${post.region} are under our hand, of ${limit}` : null;
  },
  min_online({ node, region }, { life, rules }) {
    const { region: limit } = rules.safety.minOnlinePer;
    const fleet = life?.snapshot()?.fleet;
    if (limit === null || fleet === undefined) return null;
    const online = fleet.ids.flatMap((id, slot) =>
      NODE_STATUSES[fleet.status[slot]!] === "online" && fleet.places[fleet.place[slot]!]!.region === region
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
      if (!wasRefused(posts[index]!)) sent++;
    }
    return sent > amount ? `it is the ${sent}th within ${perMs / MINUTE_MS} min, of ${amount}` : null;
  },
  storm(_post, { life, rules }) {
    const fleet = life?.snapshot()?.fleet;
    if (fleet === undefined) return null;
    const off = [...fleet.status].filter((status, slot) => {
      return fleet.ids[slot] !== "" && (NODE_STATUSES[status] === "offline" || NODE_STATUSES[status] === "unknown");
    }).length;
    const limit = wholeNodes(rules.safety.maxUnhealthy.share, fleet.count);
    return off > limit ? `${off} of ${fleet.count} nodes are offline, and ${limit} are a storm` : null;
  },
  breaker: (_post, { tripwire }) =>
    tripwire.isTripped() ? "too many nodes fired within its time, and nobody has reset it since" : null,
  cooldown({ action }, { chronicle, rules }) {
    const episode = chronicle.episodes.get(action?.episode ?? "");
    if (episode === undefined || episode.acted > 0) return null;
    const since = action!.sentAt! - lastTried(chronicle.episodes, episode);
    return since < rules.safety.cooldownMs ? `its last episode ended ${since / SECOND_MS} s ago` : null;
  },
};

function disruptedMax({ rules, service }: Stage): number {
  const { share, amount } = rules.safety.maxDisrupted;
  return Math.min(amount, wholeNodes(share, service.world.fleet.nodes.length));
}

/** Nodes under our hand by the journal, with the one that is sent to. */
function disrupted({ node, region }: Post, { chronicle }: Stage): readonly { node: string; region: string }[] {
  const held = [...chronicle.open]
    .map((id) => chronicle.episodes.get(id)!)
    .filter(({ state, quarantine }) => state !== "suspended" && (state === "acting" || quarantine !== null));
  return [...held.filter((episode) => episode.node !== node), { node, region }];
}

/** The same by the service's own truth. */
function trulyDisrupted({ node, region }: Post, stage: Stage): readonly { node: string; region: string }[] {
  for (const [id, post] of stage.underHand) if (!isUnderHand(stage, post)) stage.underHand.delete(id);
  return [...[...stage.underHand.values()].filter((post) => post.node !== node), { node, region }];
}

/** When the last episode of a node ended in which something was done. */
function lastTried(episodes: ReadonlyMap<string, Episode>, { node, id }: Episode): number {
  let last = Number.NEGATIVE_INFINITY;
  for (const episode of episodes.values()) {
    const isTried = episode.acted > 0 || episode.state === "given_up";
    if (episode.node === node && episode.id !== id && !episode.shadow && isTried)
      last = Math.max(last, episode.closedAt ?? 0);
  }
  return last;
}
