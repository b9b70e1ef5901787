import { type DurationMs, formatDuration, SECOND_MS } from "../../base/duration.ts";
import type { Action } from "../../model/remediation/episode.ts";
import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import type { Candidate } from "../../policy/candidate.ts";
import { type ActivePolicy, isShadow, type NodeSight } from "../../policy/facts.ts";
import { sourcesOf } from "../../policy/policy.ts";
import { createScope, type Scope } from "../../policy/cel/field-values.ts";
import { holds, judge } from "../../policy/timers/verdict.ts";
import { maxAgeOf, slotOf, type Ward } from "../context.ts";

/** Of a walk of the sessions, when a node is touched by what it showed. */
const WALK_AGE_MS_MAX: DurationMs = 30 * SECOND_MS;

/** What is seen of a node now, as guards see it; null: it is not in the fleet. */
export function nodeSight(ward: Ward, node: NodeId): NodeSight | null {
  const slot = slotOf(ward, node);
  if (slot === null || ward.view === null) return null;
  const { fleet } = ward.view.snapshot;
  const place = fleet.places[fleet.place[slot]!]!;
  return {
    id: node,
    status: NODE_STATUSES[fleet.status[slot]!]!,
    country: place.country,
    region: place.region,
    protected: isProtected(ward, slot),
  };
}

/** The node under a policy, as everything that is known now makes it; null: it is not in the fleet. */
export function candidateOf(ward: Ward, active: ActivePolicy, node: NodeId): Candidate | null {
  const sight = nodeSight(ward, node);
  if (sight === null) return null;
  const { books, clock } = ward;
  const { rule } = active.policy;
  const subject = scopeOf(ward).find(node)!;
  const judgement = judge(active.policy, subject, maxAgeOf(ward, rule), clock.monotonic());
  const open = books.casebook.open(node, isShadow(active));
  const episode = open?.policy === rule.name ? open : null;
  return {
    active,
    node: sight,
    timer: books.casebook.timer(rule.name, node),
    episode,
    judgement,
    observedAt: books.epochOf(judgement.at),
    approved: episode !== null && approvedAction(ward, episode.id, episode.step) !== null,
  };
}

/**
 * Whether it may be acted on at this moment. No read of a node shows its sessions, so that what they say can't be seen
 * again before it is touched: it is then touched right after they were walked, or after they are walked next.
 */
export function isTimely({ view, clock }: Ward, { active }: Candidate): boolean {
  if (!sourcesOf(active.policy).includes("sessions")) return true;
  const walkedAt = view?.snapshot.sessions?.settledAt ?? Number.NEGATIVE_INFINITY;
  return clock.monotonic() - walkedAt <= WALK_AGE_MS_MAX;
}

/** The action of a step that an operator has approved and that was not sent yet; null: none, or it has expired. */
export const approvedAction = (ward: Ward, episode: string, step: number): Action | null =>
  ward.books.casebook
    .actionsOf(episode)
    .find((action) => action.step === step && action.state === "approved" && expiryOf(ward, action) === null) ?? null;

/**
 * Why an approval, or a request for one, is too old (`safety.approval_ttl`, on the journal's clock: downtime counts); null:
 * it is not.
 */
export function expiryOf({ books, rules }: Ward, { state, createdAt, approvedAt }: Action): string | null {
  const { approvalTtlMs } = rules.safety;
  if (books.now() - (approvedAt ?? createdAt) < approvalTtlMs) return null;
  const ttl = formatDuration(approvalTtlMs);
  return state === "approved" ? `the approval expired after ${ttl}` : `it was not approved within ${ttl}`;
}

/** The snapshot of now, as expressions read it. */
export const scopeOf = ({ view, client }: Ward): Scope => createScope(view!.snapshot, client.serviceTime);

function isProtected(ward: Ward, slot: number): NodeSight["protected"] {
  if (ward.protected === null) return "false";
  return holds(ward.protected, scopeOf(ward).subject(slot), maxAgeOf(ward, null), ward.clock.monotonic()).verdict;
}
