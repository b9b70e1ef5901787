import { EPISODE_ACTIONS, EPISODE_STATES } from "../../model/label-values.ts";
import { ACTION_KINDS, MODES } from "../../model/policy/policy.ts";
import { ACTION_OUTCOMES, OPEN_STATES } from "../../model/remediation/episode.ts";
import { OPERATOR_COMMANDS } from "../../model/remediation/operator-command.ts";
import { HOLD_REASONS } from "../../policy/decision.ts";
import { counter, type DaemonFamily, gauge, histogram } from "./family.ts";

/** Buckets from a disconnect that works immediately to the longest usual step, in seconds. */
const ACTION_BUCKETS_SECONDS = [15, 30, 60, 120, 300, 600, 900, 1_800, 3_600] as const;

const policyGauge = (help: string) => gauge(help, { policy: null });

/** The `proxywarden_*` families of decisions, actions, holds and limits, in the order of the page. */
export const REMEDIATION_FAMILIES = {
  proxywarden_decisions_total: counter(
    "Decisions on nodes: each decision to take a step, and each change in the reasons to hold a node.",
    { policy: null, verdict: ["act", "hold"], reason: [...HOLD_REASONS, "all_clear"] },
  ),
  proxywarden_actions_total: counter(
    "Actions by outcome; an action in doubt is immediately counted as in_doubt, and again if it ends with another outcome.",
    { policy: null, action: ACTION_KINDS, outcome: ACTION_OUTCOMES },
  ),
  proxywarden_action_duration_seconds: histogram(
    "Time from sending an action until it was verified.",
    { action: ACTION_KINDS },
    ACTION_BUCKETS_SECONDS,
  ),
  proxywarden_episodes: gauge(
    "Nodes by state under a policy; nodes in given_up are still unhealthy, and not retried for now.",
    { policy: null, state: EPISODE_STATES },
  ),
  proxywarden_node_episode: gauge(
    "1 for each open episode, including those of dry runs, with its node, state and last action (or none). At most 1,000 episodes; those in the state firing are left out first.",
    { node_id: null, policy: null, state: OPEN_STATES, action: EPISODE_ACTIONS },
  ),
  proxywarden_held_nodes: gauge(
    "Nodes that a policy would act on but that are held, by reason; a node with several reasons counts under each. Excludes dry runs.",
    { reason: HOLD_REASONS },
  ),
  proxywarden_longest_hold_seconds: policyGauge(
    "Longest time for which the policy has held a node that it would act on; 0 if it holds none. Excludes nodes that it has given up on, and dry runs.",
  ),
  proxywarden_policy_mode: gauge(
    "1 for the effective mode: the most restrictive of the policy's mode, safety.mode, and dry_run if the policy fell back (safety.efficacy).",
    { policy: null, mode: MODES },
  ),
  proxywarden_policy_ineffective: policyGauge(
    "Whether the policy fell back to dry_run because its share of healed nodes is below safety.efficacy.",
  ),
  proxywarden_policy_matched_nodes: policyGauge(
    "Nodes that the policy's match selects, as of the last complete walk; all nodes if it has no match.",
  ),
  proxywarden_policy_unknown_nodes: policyGauge(
    "Nodes on which the policy takes no action because a field that determines the verdict is unknown, for example missing or older than max_age. Includes nodes whose verdict is unknown only for part of the time between two reads.",
  ),
  proxywarden_approvals_waiting: gauge("Actions that wait for an operator's approval."),
  proxywarden_limit_nodes: gauge(
    "Effective value of each safety limit for the current fleet, in nodes; max_in_flight and max_actions in actions.",
    { limit: null },
  ),
  proxywarden_trusted: gauge("Whether fleet data is trusted; no action is taken while it is not."),
  proxywarden_paused: gauge("Whether an operator has paused all actions."),
  proxywarden_operator_commands_total: counter(
    "Operator commands that were executed, and attempted reloads; a pause or hold that expires counts as resume or release with source expiry.",
    { command: OPERATOR_COMMANDS, source: ["operator", "expiry"] },
  ),
  proxywarden_breaker_open: gauge("Whether the circuit breaker is open; only an operator can close it."),
  proxywarden_remediation_last_success_timestamp_seconds: gauge(
    "Time at which a remediation round last succeeded, or remediation started. Rounds run every few seconds; while they fail, no node is healed.",
  ),
  proxywarden_journal_writable: gauge("Whether the journal is writable; no action is taken while it is not."),
} satisfies Readonly<Record<string, DaemonFamily>>;
