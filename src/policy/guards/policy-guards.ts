import { isAcceptableLoss } from "../episodes/episode-states.ts";
import { isDryRun } from "../policy.ts";
import { defineGuard, defineSimpleGuard } from "./guard-types.ts";

/** Holds a node whose condition is unknown. */
const verdictGuard = defineSimpleGuard({
  reason: "verdict_unknown",
  counts: "the fields that decide whether `when` holds",
  condition: "one is unknown; or a step is due, and the policy reads sessions whose last walk ended more than 30 s ago",
  ends: "automatically, once all of them are known and fresh",
  operatorAction: "`explain` names each field and why it is unknown ([causes](policies.md#unknown-fields))",
  appliesToNotify: true,
  details: ({ evaluation }) => {
    if (evaluation.verdict !== "unknown") return [];
    return [evaluation.unknowns.map(({ field, why }) => `${field}: ${why}`).join(", ")];
  },
});

/** Holds all nodes of a policy outside its windows, and while an external blocker is active. */
const policyBlockersGuard = defineGuard({
  reasons: {
    window: {
      counts: "the current time",
      condition: "it is outside the `windows` of the policy",
      ends: "automatically, when the next window opens",
      policyWide: true,
    },
    blocked_by: {
      counts: "the queries and alerts in `blocked_by`",
      condition: "one of them blocks, or its server can't be queried",
      ends: "automatically, once none of them blocks",
      operatorAction: "check Prometheus or Alertmanager if it can't be queried",
      policyWide: true,
    },
  },
  check: ({ active }, facts) => facts.policyBlockers(active.policy),
});

/** Holds a step until an operator approves it. A rejected step is held in every mode. */
const approvalGuard = defineGuard({
  reasons: {
    approval: {
      counts: "approvals",
      condition: "the policy or `safety.mode` is `approve`, and the step is not approved",
      ends: "with `approve` or `reject`, once no other reason holds the node; an approval expires after `safety.approval_ttl`",
      operatorAction: "list pending actions with `approvals`",
      policyWide: true,
    },
    rejected: {
      counts: "approvals",
      condition: "an operator rejected the step",
      ends: "automatically, when the episode ends, or with `release`",
      operatorAction: "`release` if the step may be taken after all",
    },
  },
  check: ({ active, node, episode, approved }, { records }) => {
    const actions = episode === null ? [] : records.actionsOf(episode.id).filter(({ step }) => step === episode.step);
    const rejected = actions.find(({ state }) => state === "rejected");
    if (rejected !== undefined) {
      const detail = `${rejected.detail ?? `${rejected.id} was rejected`}; "release ${node.id}" lifts the rejection`;
      return [{ reason: "rejected", detail }];
    }
    if (active.mode !== "approve" || approved) return [];
    const waiting = actions.find(({ state }) => state === "awaiting");
    const lapsed = actions.findLast(({ state }) => state === "lapsed");
    const before = lapsed === undefined ? "" : `; ${lapsed.id} lapsed: ${lapsed.detail}`;
    const detail =
      waiting === undefined ? "approval by an operator is required" : `${waiting.id} is waiting for approval`;
    return [{ reason: "approval", detail: `${detail}${before}` }];
  },
});

/** Under a new or changed policy, holds every node except the canary until an action on the canary is verified. */
const canaryGuard = defineSimpleGuard({
  reason: "canary",
  counts: "canaries of a new or changed policy",
  condition:
    "another node is the canary, and no action under this version of the policy has been verified (`safety.canary`)",
  ends: "automatically, once an action is verified, or the canary's episode ends or can't proceed; if the canary is lost, once it is available again, or with `accept-inventory`",
  operatorAction: "check the canary if this takes long; `accept-inventory` if it is lost and will not come back",
  details: ({ active, node }, facts) => {
    if (!facts.safety.canary || active.proven || isDryRun(active)) return [];
    const canary = facts.canaryEpisode(active.policy);
    if (canary === null || canary.node === node.id) return [];
    const lost = isAcceptableLoss(canary)
      ? "; it left the list or is down after an action, and stays the canary until it is available again or accept-inventory is run"
      : "";
    return [`the policy is new or changed, and ${facts.nameOf(canary.node)} (${canary.id}) is the canary${lost}`];
  },
});

/** The guards that depend on the policy. */
export const POLICY_GUARDS = [verdictGuard, policyBlockersGuard, approvalGuard, canaryGuard];
