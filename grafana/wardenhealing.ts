import { NODE_LINK } from "./board.ts";
import { EPISODE_NAMES, truth } from "./palette.ts";
import { bars, columns, stacked, stateTimeline, table, timeSeries } from "./panel.ts";
import { pick, rate } from "./query.ts";

const third = { width: 8, height: 8 };
const half = { width: 12, height: 9 };

/** What is decided and done, and what holds it. */
export const healingPanels = () => [
  stateTimeline({
    ...third,
    title: "May it act?",
    description:
      "What holds every node: sight that is not trusted, a pause, an open breaker, a journal that takes no writes.",
    unit: "none",
    queries: [
      { expr: `min(${pick("proxywarden_trusted")})`, legend: "sight is trusted" },
      { expr: `1 - max(${pick("proxywarden_paused")})`, legend: "not paused" },
      { expr: `1 - max(${pick("proxywarden_breaker_open")})`, legend: "breaker is closed" },
      { expr: `min(${pick("proxywarden_journal_writable")})`, legend: "journal is writable" },
    ],
  }).mappings([truth("yes", "no", 1)]),
  stacked({
    ...third,
    title: "Episodes by state",
    description:
      "Nodes by where they stand: pending waits for `for`, firing for leave to act, given_up is still unhealthy and not tried again for now.",
    unit: "none",
    queries: [{ expr: `sum by (state) (${pick("proxywarden_episodes")})`, legend: "{{state}}" }],
  }),
  stacked({
    ...third,
    title: "Episodes by policy",
    description: "Nodes that a policy is about now, pending ones too.",
    unit: "none",
    queries: [{ expr: `sum by (policy) (${pick("proxywarden_episodes")})`, legend: "{{policy}}" }],
  }),
  stacked({
    ...half,
    title: "Held nodes, by reason",
    description:
      "Nodes that policies would act on and that are held. A node that is held for two reasons counts under both; docs/remediation.md says how each hold ends.",
    unit: "none",
    queries: [{ expr: `sum by (reason) (${pick("proxywarden_held_nodes")})`, legend: "{{reason}}" }],
  }),
  timeSeries({
    ...half,
    title: "Longest hold, by policy",
    description: "Time for which the policy has held a node without an action. Nodes that were given up are left out.",
    unit: "s",
    queries: [{ expr: `max by (policy) (${pick("proxywarden_longest_hold_seconds")})`, legend: "{{policy}}" }],
  }),
  stacked({
    ...half,
    title: "Decisions by reason",
    description:
      "Changes of what is decided on a node. all_clear is an act, all others hold; a node that is held for two reasons counts under both. docs/metrics.md says what each means.",
    unit: "none",
    queries: [
      {
        expr: `sum by (reason) (increase(${pick("proxywarden_decisions_total")}[$__rate_interval]))`,
        legend: "{{reason}}",
      },
    ],
  }),
  stacked({
    ...half,
    title: "Actions by outcome",
    description:
      "Actions by how they ended: verified ones were seen to work. One in doubt counts as that too, until what is seen settles it.",
    unit: "none",
    queries: [
      {
        expr: `sum by (action, outcome) (increase(${pick("proxywarden_actions_total")}[$__rate_interval]))`,
        legend: "{{action}}: {{outcome}}",
      },
    ],
  }),
  timeSeries({
    ...third,
    title: "From sending to verified",
    description: "Half of the verified actions took no longer than this to be seen to work.",
    unit: "s",
    queries: [
      {
        expr: `histogram_quantile(0.5, sum by (action, le) (${rate("proxywarden_action_duration_seconds_bucket")}))`,
        legend: "{{action}}",
      },
    ],
  }),
  stateTimeline({
    ...third,
    title: "Modes in force",
    description: "The mode of each policy: the least of its own, safety.mode, and what its efficacy leaves it.",
    unit: "none",
    queries: [{ expr: `${pick("proxywarden_policy_mode")} == 1`, legend: "{{policy}}: {{mode}}" }],
  }).mappings([truth("in force", "not in force", 1)]),
  bars({
    ...third,
    title: "Safety limits",
    description: "What each safety limit comes to for the fleet as it is, in nodes.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_limit_nodes"), legend: "{{limit}}", shape: "now" }],
  }),
  table({
    width: 16,
    height: 9,
    title: "Open episodes",
    description:
      "Nodes with trouble that a policy is about, where each stands, and what was done last: of the first thousand, those beyond firing before the others.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_node_episode"), shape: "table" }],
  })
    .transformations(columns({ node_id: "Node", policy: "Policy", state: "State", action: "Last action" }))
    .filterable(true)
    .overrideByName("Node", [{ id: "links", value: [NODE_LINK] }])
    .overrideByName("State", [
      { id: "mappings", value: [EPISODE_NAMES] },
      { id: "custom.cellOptions", value: { type: "color-text" } },
    ]),
  stacked({
    ...third,
    height: 9,
    title: "Notices",
    description: "Notices by what became of them: taken by the receiver, given up, or dropped from a full queue.",
    unit: "none",
    queries: [
      {
        expr: `sum by (receiver, outcome) (increase(${pick("proxywarden_notifications_total")}[$__rate_interval]))`,
        legend: "{{receiver}}: {{outcome}}",
      },
    ],
  }),
];
