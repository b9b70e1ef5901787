import { EPISODE_STATES } from "../../metrics/label-values.ts";
import { OUTCOMES } from "../../model/remediation/episode.ts";
import type { Journal } from "../../model/remediation/journal.ts";
import { ACTION_KINDS, MODES } from "../../model/policy/policy.ts";
import { blockersOf } from "../../policy/decision.ts";
import { type ActivePolicy, type Facts, isShadow } from "../../policy/facts.ts";
import { namedLimits } from "../../policy/guards/limits.ts";
import { rowOf, shownTimer } from "../../policy/timers/timer.ts";
import { candidateOf } from "../evaluation/candidates.ts";
import {
  NODE_MARKS,
  type NodeMark,
  type PolicyExplanation,
  type PolicyStatus,
  type WardenStatus,
  type WardenView,
} from "./views.ts";
import type { Sight, SightKeeper } from "../evaluation/inventory-trust.ts";
import { PAUSED, type Situation } from "../evaluation/fleet-health.ts";
import { activePolicies, slotOf, type Ward } from "../context.ts";

/** What a portrait is drawn from. */
export interface PortraitParts {
  readonly ward: Ward;
  readonly situation: Situation;
  readonly keeper: SightKeeper;
  readonly journal: Pick<Journal, "decisions" | "actions" | "episodes" | "orders">;
  /** What is thought of our eyes now. */
  readonly sight: () => Sight;
}

/** Rows of each kind in an explanation. */
const ROWS_OF_NODE = 50;

/** Shows the warden as it stands. */
export function createPortrait(parts: PortraitParts): WardenView {
  const { ward, journal } = parts;
  const { casebook } = ward.books;
  return {
    status: () => statusOf(parts),
    policies: () => activePolicies(ward).map((active) => policyStatus(ward, active)),
    explain(node) {
      const known = slotOf(ward, node) !== null;
      const query = { node, limit: ROWS_OF_NODE };
      return {
        node,
        known,
        at: ward.books.now(),
        policies: known ? explainPolicies(parts, node) : [],
        // A given-up node that was released keeps its row for the tries that count since.
        holds: casebook.holds(node).filter(({ kind, until }) => kind !== "given_up" || until === null),
        episodes: journal.episodes(query),
        actions: journal.actions(query),
        decisions: journal.decisions(query),
        orders: journal.orders(query),
      };
    },
    decisions: (query) => journal.decisions(query),
    actions: (query) => journal.actions(query),
    orders: (query) => journal.orders(query),
    approvals: () => [...casebook.actions()].filter(({ state }) => state === "awaiting"),
    marks: () => marksOf(ward),
  };
}

function statusOf({ ward, situation, keeper, sight }: PortraitParts): WardenStatus {
  const { books, rules, view } = ward;
  const paused = books.casebook.fact(PAUSED);
  return {
    mode: rules.safety.mode,
    paused: paused === null ? null : (JSON.parse(paused) as WardenStatus["paused"]),
    breaker: situation.breaker().open,
    trust: sight().blockers,
    stormUntil: situation.storm()?.until ?? null,
    journal: books.problem(),
    baseline: keeper.baseline(),
    limits: namedLimits(rules.safety, view?.snapshot.fleet.count ?? 0),
    inFlight: [...books.casebook.actions()].filter(({ state, shadow }) => state === "sent" && !shadow).length,
  };
}

function policyStatus({ books }: Ward, active: ActivePolicy): PolicyStatus {
  const { rule } = active.policy;
  const { casebook } = books;
  const timers = [...casebook.timersOf(rule.name)];
  const firing = timers.filter(([, { state }]) => state === "firing").map(([node]) => node);
  const open = casebook
    .openEpisodes()
    .filter(({ policy, shadow }) => policy === rule.name && shadow === isShadow(active));
  const givenUp = firing.filter((node) => {
    if (casebook.open(node, isShadow(active)) !== null) return false;
    return casebook.past(node, isShadow(active)).findLast(({ policy }) => policy === rule.name)?.state === "given_up";
  });
  const counts = Object.fromEntries(
    EPISODE_STATES.map((state) => [state, open.filter((episode) => episode.state === state).length]),
  );
  return {
    rule,
    mode: active.mode,
    fallen: active.fallen,
    proven: active.proven,
    pending: timers.length - firing.length,
    firing: firing.length,
    episodes: { ...counts, pending: timers.length - firing.length, given_up: givenUp.length },
  };
}

function explainPolicies({ ward, situation, sight }: PortraitParts, node: string): PolicyExplanation[] {
  const facts = new Map<boolean, Facts>();
  const factsOf = (shadow: boolean): Facts => {
    const known = facts.get(shadow) ?? situation.facts(shadow, sight());
    facts.set(shadow, known);
    return known;
  };
  return activePolicies(ward).flatMap((active): PolicyExplanation[] => {
    const candidate = candidateOf(ward, active, node);
    if (candidate === null) return [];
    const { judgement } = candidate;
    const { name, forMs } = active.policy.rule;
    const timer = rowOf(name, node, candidate.timer);
    const episode = candidate.episode ?? ward.books.casebook.suspended(name, node, isShadow(active));
    return [
      {
        policy: name,
        mode: active.mode,
        verdict: judgement.verdict,
        matched: judgement.matched,
        unknowns: judgement.unknowns.map(({ field, why }) => ({ field: field ?? "the expression", why })),
        fields: judgement.fields(),
        timer: timer === null ? null : shownTimer(timer),
        forMs,
        episode,
        blockers: blockersOf(candidate, factsOf(isShadow(active))),
      },
    ];
  });
}

function marksOf({ books, policies }: Ward): ReadonlyMap<string, NodeMark> {
  const { casebook } = books;
  const marks = new Map<string, NodeMark>();
  const mark = (node: string, what: NodeMark) => {
    if (NODE_MARKS.indexOf(what) > NODE_MARKS.indexOf(marks.get(node) ?? "none")) marks.set(node, what);
  };
  for (const { rule } of policies) {
    for (const [node, { state }] of casebook.timersOf(rule.name)) mark(node, state === "firing" ? "firing" : "pending");
  }
  for (const { node, shadow, state } of casebook.openEpisodes()) {
    if (shadow) mark(node, "shadow");
    else mark(node, state === "acting" ? "acting" : "episode");
  }
  const now = books.now();
  for (const { node, kind, until } of casebook.allHolds()) {
    if (kind !== "given_up" && (until === null || until > now)) mark(node, "held");
  }
  for (const { node, state } of casebook.actions()) if (state === "awaiting") mark(node, "awaiting");
  return marks;
}

/** Sets the gauges of what a portrait shows. */
export function showPortrait(ward: Ward, view: WardenView): void {
  const { metrics } = ward;
  const status = view.status();
  metrics.set("proxywarden_trusted", {}, status.trust.length === 0 ? 1 : 0);
  metrics.set("proxywarden_paused", {}, status.paused === null ? 0 : 1);
  metrics.set("proxywarden_breaker_open", {}, status.breaker === null ? 0 : 1);
  metrics.set("proxywarden_journal_writable", {}, status.journal === null ? 1 : 0);
  for (const [limit, nodes] of Object.entries(status.limits)) {
    metrics.set("proxywarden_limit_nodes", { limit }, nodes);
  }
  for (const { rule, mode, episodes } of view.policies()) {
    const policy = rule.name;
    for (const state of EPISODE_STATES) metrics.set("proxywarden_episodes", { policy, state }, episodes[state] ?? 0);
    for (const each of MODES) metrics.set("proxywarden_policy_mode", { policy, mode: each }, each === mode ? 1 : 0);
  }
}

/** Begins the counters of a policy at zero, so that their first increase is one. */
export function beginCounters({ metrics, policies }: Ward): void {
  for (const { rule } of policies) {
    metrics.inc("proxywarden_decisions_total", { policy: rule.name, verdict: "act", reason: "all_clear" }, 0);
    const kinds = ACTION_KINDS.filter((kind) => rule.steps.some(({ action }) => action === kind));
    for (const action of kinds) {
      for (const outcome of OUTCOMES)
        metrics.inc("proxywarden_actions_total", { policy: rule.name, action, outcome }, 0);
    }
  }
}

/** Takes away the gauges of policies that are no more. */
export function removeGauges({ metrics, policies }: Ward): void {
  for (const { rule } of policies) {
    for (const state of EPISODE_STATES) metrics.remove("proxywarden_episodes", { policy: rule.name, state });
    for (const mode of MODES) metrics.remove("proxywarden_policy_mode", { policy: rule.name, mode });
  }
}
