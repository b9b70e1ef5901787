import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { eachInSteps, type Steps } from "../../base/steps.ts";
import type { NodeId } from "../../model/node.ts";
import type { NodeHold } from "../../model/remediation/episode.ts";
import type { Location } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import { selectInSteps } from "../../policy/cel/fleet-aggregates.ts";
import { HOLD_REASONS } from "../../policy/decision.ts";
import { isGivenUp } from "../../policy/episodes/attempts.ts";
import { withOwnership } from "../../policy/guards/node-guards.ts";
import { isDryRun } from "../../policy/policy.ts";
import type { DecisionContext, EpisodeContext } from "../context.ts";
import type { LastDecision } from "../evaluation/action-planner.ts";
import { holdsAt } from "../operator-holds.ts";
import type { HeldNode, HeldNodesQuery, NodeMark } from "./views.ts";

type HoldDeps = Pick<DecisionContext, "remediationState" | "policies">;

type HeldRow = Omit<HeldNode, "name" | "ipAddress" | keyof Location>;

/**
 * Returns the nodes that are held, in steps. Those that a policy would treat come before the others, and in each group
 * the longest hold comes first. `lastDecisions` is null on a standby, which knows only the holds of nodes.
 */
export function* heldNodesOf(
  context: HoldDeps & Pick<DecisionContext, "observed">,
  lastDecisions: readonly LastDecision[] | null,
  query: HeldNodesQuery,
): Steps<readonly HeldNode[]> {
  const { remediationState, observed } = context;
  const isMatch = ({ node, policy }: Pick<HeldRow, "node" | "policy">) =>
    (query.node ?? node) === node && (query.policy ?? policy) === policy;
  const now = remediationState.now();
  const held = new Map<NodeId, HeldRow>();
  const holds = holdsInForce(remediationState);
  const holdsByNode = Map.groupBy(holds, ({ node }) => node);
  yield* eachInSteps(lastDecisions ?? [], (decision) => {
    // Several policies may hold a node, so a query for one of them must not see the others.
    if (!isMatch(decision) || !isHold(context, decision)) return;
    const { policy, node, reasons } = decision;
    const until = endOf(holdsByNode.get(node) ?? [], policy);
    const row = { node, policy, heldMs: heldMs(context, decision, now), reasons, until };
    const known = held.get(node);
    if (known === undefined || known.heldMs < row.heldMs) held.set(node, row);
  });
  for (const hold of holds) {
    const { node, at, policy } = hold;
    const row = { node, policy: null, heldMs: now - at, reasons: kindsOf(hold, now), until: endOf([hold], policy) };
    if (!held.has(node) && isMatch(row)) held.set(node, row);
  }
  const rows = yield* firstRows([...held.values()], query.limit ?? Number.POSITIVE_INFINITY);
  // Only the rows that are shown get names and locations, because thousands may be held.
  return rows.map(({ node, ...row }) => ({
    node,
    name: observed.nameOf(node),
    ipAddress: observed.ipAddressOf(node),
    ...observed.locationOf(node),
    ...row,
  }));
}

/** Added to the rank of nodes that a policy would treat: more than any hold lasts. */
const TREATED_RANK_MS: DurationMs = 1e15;

/** Returns the first rows in order. The others are not sorted, because that would take several milliseconds. */
function* firstRows(rows: readonly HeldRow[], limit: number): Steps<readonly HeldRow[]> {
  const rank = ({ policy, heldMs }: HeldRow) => heldMs + (policy === null ? 0 : TREATED_RANK_MS);
  let lowest = Number.NEGATIVE_INFINITY;
  if (limit < rows.length) {
    const ranks = new Float64Array(rows.length);
    for (const [index, row] of rows.entries()) ranks[index] = rank(row);
    yield;
    lowest = yield* selectInSteps(ranks, rows.length - limit);
  }
  const first = rows.filter((row) => rank(row) >= lowest).sort((one, other) => rank(other) - rank(one));
  yield;
  return first.slice(0, limit);
}

/** Returns the number of nodes in {@link heldNodesOf}, in steps. */
export function* heldNodeCountOf(context: HoldDeps, lastDecisions: readonly LastDecision[] | null): Steps<number> {
  const nodes = new Set(holdsInForce(context.remediationState).map(({ node }) => node));
  yield* eachInSteps(lastDecisions ?? [], (decision) => {
    if (isHold(context, decision)) nodes.add(decision.node);
  });
  return nodes.size;
}

/** Sets the gauges of held nodes and of the longest hold of each policy, in steps. Dry runs are left out. */
export function* setHoldGauges(
  context: HoldDeps & Pick<EpisodeContext, "metrics">,
  lastDecisions: Iterable<LastDecision>,
): Steps<void> {
  const { metrics, policies, remediationState } = context;
  const now = remediationState.now();
  const nodes = new Map(HOLD_REASONS.map((reason) => [reason, new Set<NodeId>()]));
  const longestMs = new Map<string, DurationMs>();
  for (const decision of lastDecisions) {
    yield;
    if (!isHold(context, decision)) continue;
    const { policy, node, reasons } = decision;
    for (const reason of reasons) nodes.get(reason)!.add(node);
    // Given-up nodes have a count and an alert of their own.
    if (isGivenUp(remediationState.records, policy, node, false)) continue;
    longestMs.set(policy, Math.max(longestMs.get(policy) ?? 0, heldMs(context, decision, now)));
  }
  for (const [reason, { size }] of nodes) metrics.set("proxywarden_held_nodes", { reason }, size);
  for (const { spec } of policies.all) {
    const seconds = (longestMs.get(spec.name) ?? 0) / SECOND_MS;
    metrics.set("proxywarden_longest_hold_seconds", { policy: spec.name }, seconds);
  }
}

/** Returns whether a policy that acts holds the node. A node that an episode of any policy treats is not held. */
function isHold({ remediationState }: HoldDeps, { node, dryRun, reasons }: LastDecision): boolean {
  if (dryRun || reasons.length === 0) return false;
  const open = remediationState.records.openEpisode(node, false);
  return open === null || open.state === "firing";
}

type HoldInForce = NodeHold & { readonly kind: Exclude<NodeHold["kind"], "given_up"> };

/** Returns the holds of nodes that have not ended, except those of policies that gave a node up. */
const holdsInForce = (remediationState: HoldDeps["remediationState"]): readonly HoldInForce[] =>
  holdsAt(remediationState.records.allHolds(), remediationState.now()).filter(
    (hold): hold is HoldInForce => hold.kind !== "given_up",
  );

/** Returns the kind of a hold, and that of the one that it has in addition if that is in force. */
const kindsOf = ({ kind, ownership }: HoldInForce, now: EpochMs): readonly HoldInForce["kind"][] =>
  ownership !== undefined && ownership.until > now ? [kind, "ownership"] : [kind];

/** Returns when the last of a node's holds that apply to a policy ends, or null if none applies or one has no end. */
function endOf(holds: readonly HoldInForce[], policy: string | null): EpochMs | null {
  const applying = holds.filter((hold) => hold.policy === null || hold.policy === policy);
  const end = Math.max(...applying.flatMap(withOwnership).map(({ until }) => until ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(end) ? end : null;
}

/**
 * Returns how long a node has been held at `now`: since the last step of its episode ended or, if it had none, since its
 * timer fired or its last episode closed, whichever is later.
 */
function heldMs({ remediationState, policies }: HoldDeps, { policy, node }: LastDecision, now: EpochMs): DurationMs {
  const { records } = remediationState;
  const open = records.openEpisode(node, false);
  if (open?.policy === policy && open.acted > 0) return Math.max(0, now - open.stateAt);
  const { since } = records.timer(policy, node);
  const forMs = policies.find(policy)?.spec.forMs ?? 0;
  const closedAt = records.closedEpisodesOf(node, false).at(-1)?.closedAt ?? Number.NEGATIVE_INFINITY;
  return Math.max(0, now - Math.max((since ?? now) + forMs, closedAt));
}

/**
 * Calls `mark` with every mark of every node that has one, in steps. `lastDecisions` is null on a standby, which shows
 * every node that fires as held.
 */
export function* nodeMarksOf(
  context: HoldDeps,
  lastDecisions: readonly LastDecision[] | null,
  mark: (node: NodeId, mark: NodeMark) => void,
): Steps<void> {
  const { remediationState, policies } = context;
  const { records } = remediationState;
  // Without a decision the condition of a firing node has ended, and `clear_for` runs.
  const undecided = lastDecisions === null ? "firing" : "pending";
  for (const active of policies.active()) {
    const { name } = active.policy.spec;
    const dryRun = isDryRun(active);
    yield* eachInSteps(records.timersOf(name), ([node, { state }]) => {
      if (state !== "firing") mark(node, "pending");
      else if (dryRun) mark(node, "dry_run");
      else mark(node, isGivenUp(records, name, node, false) ? "given_up" : undecided);
    });
  }
  yield* eachInSteps(records.openEpisodes(), ({ node, dryRun, state }) => {
    if (dryRun) mark(node, "dry_run");
    else if (state === "acting") mark(node, "acting");
    else mark(node, state === "firing" || state === "suspended" ? undecided : "episode");
  });
  yield* eachInSteps(lastDecisions ?? [], (decision) => {
    if (isHold(context, decision)) mark(decision.node, holdMark(decision));
  });
  yield* eachInSteps(holdsInForce(remediationState), ({ node }) => mark(node, "held"));
  yield* eachInSteps(records.actions(), ({ node, state }) => state === "awaiting" && mark(node, "awaiting"));
}

/** Returns the mark of a node that is held. It shows whether the node only waits for other actions. */
function holdMark({ reasons }: LastDecision): NodeMark {
  if (!reasons.every((reason) => reason === "in_flight" || reason === "canary")) return "firing";
  return reasons.includes("canary") ? "canary" : "in_flight";
}
