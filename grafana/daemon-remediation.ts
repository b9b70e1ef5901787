import { NODE_LINKS } from "./dashboard.ts";
import { booleanMapping, coloredText, EPISODE_NAMES } from "./palette.ts";
import { bars, columns, counts, stacked, stateTimeline, table, timeSeries } from "./panel.ts";
import { gained, rate, selector } from "./query.ts";

const third = { width: 8, height: 8 };
const half = { width: 12, height: 9 };

/** Decisions, holds and actions. */
export const remediationPanels = () => [
  ...episodePanels(),
  ...holdPanels(),
  ...actionPanels(),
  ...limitPanels(),
  ...recordPanels(),
];

const episodePanels = () => [
  stateTimeline({
    ...third,
    title: "Actions possible",
    description:
      "Conditions for any action. While one of them is not met, all nodes are held; `proxywarden status` says why.",
    unit: "none",
    queries: [
      { expr: `min(${selector("proxywarden_trusted")})`, legend: "fleet data trusted" },
      { expr: `1 - max(${selector("proxywarden_paused")})`, legend: "not paused" },
      { expr: `1 - max(${selector("proxywarden_breaker_open")})`, legend: "breaker closed" },
      { expr: `min(${selector("proxywarden_journal_writable")})`, legend: "journal writable" },
      {
        expr: `max(time() - ${selector("proxywarden_remediation_last_success_timestamp_seconds")}) < bool 900`,
        legend: "rounds succeed",
      },
    ],
  }).mappings([booleanMapping("yes", "no", 1)]),
  stacked({
    ...third,
    title: "Episodes by state",
    empty: "No policies",
    description:
      "Nodes by state. pending: `for` is running. firing: the next step waits until nothing holds it. given_up: still unhealthy, and not retried for now.",
    unit: "none",
    queries: [{ expr: `sum by (state) (${selector("proxywarden_episodes")})`, legend: "{{state}}" }],
  }),
  stacked({
    ...third,
    title: "Episodes by policy",
    empty: "No policies",
    description: "Nodes that are pending, have an open episode or were given up on, by policy.",
    unit: "none",
    queries: [{ expr: `sum by (policy) (${selector("proxywarden_episodes")})`, legend: "{{policy}}" }],
  }),
];

const holdPanels = () => [
  stacked({
    ...third,
    title: "Held nodes by reason",
    empty: "No policies",
    description:
      "Nodes that a policy would act on but that are held. A node held for several reasons counts under each. `proxywarden nodes --held` lists them; docs/remediation.md says how each hold ends.",
    unit: "none",
    queries: [{ expr: `sum by (reason) (${selector("proxywarden_held_nodes")})`, legend: "{{reason}}" }],
  }),
  timeSeries({
    ...third,
    title: "Longest hold by policy",
    empty: "No policies",
    description:
      "Longest time for which a policy has held a node without an action. Nodes that were given up on do not count.",
    unit: "s",
    queries: [{ expr: `max by (policy) (${selector("proxywarden_longest_hold_seconds")})`, legend: "{{policy}}" }],
  }),
  timeSeries({
    ...third,
    title: "Matched nodes and unknown conditions",
    empty: "No policies",
    description:
      "Nodes that the match of a policy selects, and nodes on which it takes no action because a field that determines the verdict is missing, null, of unknown scale or older than max_age. `proxywarden explain` names the fields.",
    unit: "none",
    queries: [
      { expr: `max by (policy) (${selector("proxywarden_policy_matched_nodes")})`, legend: "{{policy}}: matched" },
      { expr: `max by (policy) (${selector("proxywarden_policy_unknown_nodes")})`, legend: "{{policy}}: unknown" },
    ],
  }),
];

const actionPanels = () => [
  counts({
    ...half,
    title: "Decisions by reason",
    empty: "No policies",
    description:
      "Decisions on nodes: each decision to take a step, and each change in the reasons to hold a node. all_clear: act; any other reason: hold. A node held for several reasons counts under each. docs/remediation.md explains the reasons.",
    queries: [{ ...gained("reason", "proxywarden_decisions_total"), legend: "{{reason}}" }],
  }),
  counts({
    ...half,
    title: "Actions by outcome",
    empty: "No policy has an action",
    description:
      "Actions by outcome. verified: observed to work. An action in doubt is immediately counted as in_doubt, and again if it ends with another outcome.",
    queries: [{ ...gained("action, outcome", "proxywarden_actions_total"), legend: "{{action}}: {{outcome}}" }],
  }),
  timeSeries({
    ...third,
    title: "Time to verification",
    empty: "No action was verified in the time range",
    description: "Median time from sending an action to its verification.",
    unit: "s",
    queries: [
      {
        expr: `histogram_quantile(0.5, sum by (action, le) (${rate("proxywarden_action_duration_seconds_bucket")}))`,
        legend: "{{action}}",
      },
    ],
  }),
];

const limitPanels = () => [
  stateTimeline({
    ...third,
    title: "Effective modes",
    empty: "No policies",
    description:
      "Mode of each policy: the most restrictive of its own mode, safety.mode, and dry_run if it fell back (safety.efficacy).",
    unit: "none",
    queries: [{ expr: `${selector("proxywarden_policy_mode")} == 1`, legend: "{{policy}}: {{mode}}" }],
  }).mappings([booleanMapping("effective", "not effective", 1)]),
  bars({
    ...third,
    title: "Safety limits",
    empty: "No fleet observed yet",
    description: "Each safety limit for the current fleet, in nodes; max_in_flight and max_actions in actions.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_limit_nodes"), legend: "{{limit}}", shape: "now" }],
  }),
];

const recordPanels = () => [
  table({
    width: 16,
    height: 9,
    title: "Open episodes",
    empty: "No open episodes",
    description:
      "Nodes with an open episode: policy, state and last action. At most a thousand are exported; those in the state firing are left out first.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_node_episode"), shape: "table" }],
  })
    .transformations(columns({ node_id: "Node", policy: "Policy", state: "State", action: "Last action" }))
    .filterable(true)
    .overrideByName("Node", [{ id: "links", value: NODE_LINKS }])
    .overrideByName("State", coloredText(EPISODE_NAMES)),
  counts({
    ...third,
    height: 9,
    title: "Notifications",
    empty: "No notifications",
    description: "Notifications by outcome: sent, failed (after all retries, or rejected by the receiver), or dropped.",
    queries: [
      { ...gained("receiver, outcome", "proxywarden_notifications_total"), legend: "{{receiver}}: {{outcome}}" },
    ],
  }),
  counts({
    ...half,
    title: "Operator commands",
    empty: "No commands",
    description: "Operator commands, and attempted reloads. expiry: a pause or hold that expired.",
    queries: [
      { ...gained("command, source", "proxywarden_operator_commands_total"), legend: "{{command}} ({{source}})" },
    ],
  }),
  timeSeries({
    ...half,
    title: "Undelivered notifications",
    empty: "No receivers",
    description: "Notifications that wait for their receiver, including those being retried.",
    unit: "none",
    queries: [{ expr: `max by (receiver) (${selector("proxywarden_notifications_queued")})`, legend: "{{receiver}}" }],
  }),
];
