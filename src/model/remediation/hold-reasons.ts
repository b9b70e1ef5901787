import { type DurationMs, HOUR_MS } from "../../base/duration.ts";

/** Why a node is held, what is counted or read for it, and how the hold ends. */
export interface HoldReasonRow {
  /** What is counted or read. */
  readonly counts: string;
  /** When it holds, with the key of the configuration that sets the limit. */
  readonly condition: string;
  /** How the hold ends without an operator, or which order ends it. */
  readonly ends: string;
  /** What an operator does about it; absent: nothing. */
  readonly operatorAction?: string;
  /**
   * The alert of `config/prometheus/rules` that fires before the hold has lasted {@link HOLD_MS_MAX}; absent: with the default
   * `safety` it ends by itself before that.
   */
  readonly alert?: string;
}

/** No node is held for longer without an alert. */
export const HOLD_MS_MAX: DurationMs = 6 * HOUR_MS;

const HELD_TOO_LONG = "ProxywardenHeldTooLong";
const UNTRUSTED = "ProxywardenUntrusted";
const GIVEN_UP = "ProxywardenNodeGivenUp";

/**
 * Every reason for which a node is held: values of the label `reason` of `proxywarden_decisions_total` where the verdict is
 * `hold`. Documentation, `explain` and the status page read these rows.
 */
export const HOLD_REASON_ROWS = {
  // The daemon itself.
  paused: {
    counts: "orders",
    condition: "an operator paused all actions",
    ends: "with `resume`",
    operatorAction: "`resume` once the reason that `status` shows is gone",
    alert: "ProxywardenPaused",
  },
  journal: {
    counts: "writes to the journal",
    condition: "the last write failed: an action that can't be recorded is not sent",
    ends: "by itself, with the next write that succeeds",
    operatorAction: "free disk space, or repair the folder `state.path`",
    alert: "ProxywardenJournalNotWritable",
  },
  credentials: {
    counts: "answers to actions",
    condition: "the service answered an action with 401 or 403",
    ends: "by itself, after 15 minutes: then one action is tried",
    operatorAction: "renew the API key, or give it the scope `nodes:write`",
    alert: "ProxywardenActionFailing",
  },
  // Trust in fleet data.
  warming_up: {
    counts: "complete walks since the start",
    condition: "there are fewer than `safety.trust.warmup_walks`",
    ends: "by itself, after a few walks",
    alert: UNTRUSTED,
  },
  inventory_incomplete: {
    counts: "nodes that the last walk missed",
    condition: "it was cut off, or missed more than `safety.trust.max_missing`",
    ends: "by itself, with the next complete walk, or with `accept-inventory`",
    operatorAction: "find out why the list is incomplete; `accept-inventory` if it is right",
    alert: UNTRUSTED,
  },
  inventory_shrunk: {
    counts: "nodes of the last walk",
    condition: "there are fewer than `safety.trust.min_inventory` of the largest walk in 7 days",
    ends: "by itself once they are back or 7 days have passed, or with `accept-inventory`",
    operatorAction: "`accept-inventory` if the nodes were removed on purpose",
    alert: UNTRUSTED,
  },
  inventory_unknown: {
    counts: "records that are unreadable or of an unknown status",
    condition: "there are more than `safety.trust.max_unknown`",
    ends: "by itself, with the next walk that shows fewer",
    operatorAction: "compare what the service answers with what the log says of its records",
    alert: UNTRUSTED,
  },
  last_seen_stale: {
    counts: "the age of the freshest `last_seen` of the fleet",
    condition: "it is older than `safety.trust.max_freshest_last_seen`",
    ends: "automatically, once the service receives node reports again",
    operatorAction: "check the service: it receives no node reports",
    alert: UNTRUSTED,
  },
  service_clock: {
    counts: "Date headers, and after a downtime their distance from the wall clock",
    condition: "no answer of the service had one; or, after a downtime, the wall clock and the service's Date disagree",
    ends: "by itself, with the first answer that has one; or once the two agree, after an hour at most",
    operatorAction: "configure the proxy in front of the service to keep the Date header; correct the wall clock",
    alert: UNTRUSTED,
  },
  sight_cooldown: {
    counts: "the time since fleet data is trusted again",
    condition: "it is shorter than `safety.storm_cooldown`",
    ends: "by itself, after that time",
  },
  // The policy.
  verdict_unknown: {
    counts: "the fields that decide whether `when` holds",
    condition: "one is missing, null, of an unknown scale, or older than `max_age`",
    ends: "by itself, once all of them are known and fresh",
    alert: HELD_TOO_LONG,
  },
  window: {
    counts: "the time of day",
    condition: "it is outside of the `windows` of the policy",
    ends: "by itself, when the next window opens",
    alert: HELD_TOO_LONG,
  },
  blocked_by: {
    counts: "the queries and alerts in `blocked_by`",
    condition: "one of them blocks, or can't be asked",
    ends: "by itself, once none of them does",
    operatorAction: "check Prometheus or Alertmanager if it can't be asked",
    alert: HELD_TOO_LONG,
  },
  approval: {
    counts: "approvals",
    condition: "the policy or `safety.mode` is `approve`, and the step is not approved",
    ends: "with `approve` or `reject`; an approval expires after `safety.approval_ttl`",
    operatorAction: "`approvals` lists what waits",
    alert: HELD_TOO_LONG,
  },
  rejected: {
    counts: "approvals",
    condition: "an operator rejected the step",
    ends: "by itself, with the end of the episode",
    alert: HELD_TOO_LONG,
  },
  canary: {
    counts: "nodes on which a new or changed policy is tried",
    condition: "another node is, and no action under this text is verified (`safety.canary`)",
    ends: "by itself, once an action is verified, or the other episode ends or can't proceed",
    operatorAction: "look at the other node if it takes long",
    alert: HELD_TOO_LONG,
  },
  // The node.
  protected: {
    counts: "the node, by `safety.protected`",
    condition: "the expression holds, or is unknown",
    ends: "with a change of `safety.protected`",
    alert: HELD_TOO_LONG,
  },
  held: {
    counts: "orders",
    condition: "an operator holds the node",
    ends: "with `release`",
    operatorAction: "`release` once the node may be acted on",
    alert: HELD_TOO_LONG,
  },
  status: {
    counts: "the status of the node",
    condition:
      "it is in maintenance, of an unknown status, or rebooting or in a quarantine of ours, but not for this policy",
    ends: "by itself, with the status",
    alert: HELD_TOO_LONG,
  },
  ownership: {
    counts: "actions of others on the node",
    condition:
      "it is in a quarantine that is not ours or outlasts ours, or someone else rebooted it in the last 15 minutes",
    ends: "by itself, 15 minutes after the action was last seen, or with `release`",
    operatorAction: "check that no second daemon or script acts on this fleet",
    alert: HELD_TOO_LONG,
  },
  vetoed: {
    counts: "quarantines of ours that an operator lifted",
    condition: "one was lifted within `retry.every`",
    ends: "by itself, after `retry.every`, or with `release`",
    alert: HELD_TOO_LONG,
  },
  other_episode: {
    counts: "open episodes of the node",
    condition: "another policy has one",
    ends: "by itself, once that episode ends or is suspended",
    alert: HELD_TOO_LONG,
  },
  cooldown: {
    counts: "the time since the last episode of the node",
    condition: "it is shorter than `safety.cooldown`",
    ends: "by itself, after that time",
  },
  retry_wait: {
    counts: "the time since the policy gave the node up",
    condition: "it is shorter than `retry.every`",
    ends: "by itself, after that time",
    operatorAction: "look at the node: the policy did not heal it",
    alert: GIVEN_UP,
  },
  retry_limit: {
    counts: "episodes of the node under the policy",
    condition: "there were `retry.episodes` in a row: the node is given up",
    ends: "by itself, once the node is seen healthy, or with `release`",
    operatorAction: "repair or replace the node: the policy does not heal it",
    alert: GIVEN_UP,
  },
  backoff: {
    counts: "attempts of the step that were not executed",
    condition: "the wait after the last one is not over; after 5 answers of 429 the node is given up",
    ends: "by itself, after 1 s to 30 min, or after Retry-After",
    alert: HELD_TOO_LONG,
  },
  // The fleet.
  storm: {
    counts: "nodes that are offline, of an unknown status, firing, disrupted or lost",
    condition: "there are more than `safety.max_unhealthy`",
    ends: "by itself, `safety.storm_cooldown` after there are fewer",
    operatorAction: "find the common cause: network, service or upstream",
    alert: HELD_TOO_LONG,
  },
  storm_cooldown: {
    counts: "the time since the storm",
    condition: "it is shorter than `safety.storm_cooldown`",
    ends: "by itself, after that time",
  },
  correlated: {
    counts: "nodes of one region or country that went bad within `safety.correlated.within`",
    condition: "there are as many as the smaller of `nodes` and `percent` of `safety.correlated`",
    ends: "by itself, once most of them have recovered, or 6 h after the last one went bad",
    operatorAction: "find the common cause in that region or country",
    alert: HELD_TOO_LONG,
  },
  breaker: {
    counts: "nodes that began to fire, or were lost, within `safety.breaker.within`",
    condition: "there were more than the larger of `amount` and `percent` of `safety.breaker`",
    ends: "with `reset-breaker`",
    operatorAction: "find out why so many nodes fired, then `reset-breaker`",
    alert: "ProxywardenBreakerOpen",
  },
  in_flight: {
    counts: "actions that are sent and not yet verified, also of lost nodes",
    condition: "there are `safety.max_in_flight`",
    ends: "by itself, once one is verified or its time is up",
    alert: HELD_TOO_LONG,
  },
  disrupted: {
    counts:
      "nodes that our actions make unavailable: rebooting, disconnected, in our quarantine unless they were offline before it, or lost",
    condition: "there would be more than the smaller of `amount` and `percent` of `safety.max_disrupted`",
    ends: "by itself, once one of them is available again; of lost nodes also with `accept-inventory`",
    operatorAction: "`accept-inventory` if the lost nodes will not come back",
    alert: HELD_TOO_LONG,
  },
  disrupted_domain: {
    counts: "the same in the region or country of the node",
    condition: "there would be more than `safety.max_disrupted_per`",
    ends: "by itself, once one of them is available again; of lost nodes also with `accept-inventory`",
    operatorAction: "`accept-inventory` if the lost nodes will not come back",
    alert: HELD_TOO_LONG,
  },
  min_online: {
    counts: "online nodes of the region or country",
    condition: "fewer than `safety.min_online_per` would stay online, and the node is online",
    ends: "by itself, once more nodes are online; the only node of a region or country is held while it is online",
    operatorAction: "act by hand, or lower `safety.min_online_per`, where too few nodes exist",
    alert: HELD_TOO_LONG,
  },
  max_actions: {
    counts: "actions sent, of any kind: every POST that the service answered, or may have received",
    condition: "there were `amount` within `per` of `safety.max_actions`",
    ends: "by itself, once the oldest of them is older than `per`",
    alert: HELD_TOO_LONG,
  },
} as const satisfies Record<string, HoldReasonRow>;
