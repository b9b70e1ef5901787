import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { createDashboard, EXPLAIN_LINK, journalVariables, UIDS } from "./dashboard.ts";
import { steps } from "./palette.ts";
import { counts, stat, table, timeSeries } from "./panel.ts";
import { OF_NODE, ofPolicies, TABLE_ROWS_MAX } from "./sql.ts";

/** The dashboard of the journal in PostgreSQL: which operator gave which command, what was done, and why. */
export const auditDashboard = (): DashboardBuilder =>
  createDashboard({
    uid: UIDS.audit,
    title: "Proxywarden audit",
    description:
      "The journal of daemons with state.postgres: operator commands and approvals, actions, episodes and decisions, from its views.",
    from: "now-7d",
    sources: journalVariables(),
    overview: overviewPanels(),
    rows: {
      Operators: operatorPanels(),
      Actions: actionPanels(),
      Episodes: episodePanels(),
      Decisions: decisionPanels(),
    },
  });

const quarter = { width: 6, height: 4 };
const half = { width: 12, height: 9 };
const whole = { width: 24, height: 10 };

/** Links from a cell with a node id. They don't select the data source of the node's dashboard, which is not known here. */
const NODE_LINKS = [
  {
    id: "links",
    value: [
      { title: "Open the node", url: `/d/${UIDS.node}?var-node=\${__value.raw}&\${__url_time_range}` },
      EXPLAIN_LINK,
    ],
  },
];

const number = (title: string, description: string, unit: string, sql: string) =>
  stat({ ...quarter, title, description, unit, queries: [{ sql }] }).thresholds(steps("text"));

const rows = (title: string, description: string, sql: string) =>
  table({ ...whole, title, description, unit: "none", queries: [{ sql: `${sql}\nLIMIT ${TABLE_ROWS_MAX}` }] })
    .filterable(true)
    .overrideByName("node", NODE_LINKS);

const overviewPanels = () => [
  number(
    "Actions sent",
    "Actions that were sent to the service in the time range. Excludes dry runs.",
    "none",
    `SELECT count(*) AS actions FROM proxywarden_actions\nWHERE NOT dry_run AND ${ofPolicies("sent_at")}`,
  ),
  number(
    "Episodes begun",
    "Episodes that began in the time range. Excludes dry runs.",
    "none",
    `SELECT count(*) AS episodes FROM proxywarden_episodes\nWHERE NOT dry_run AND ${ofPolicies("opened_at")}`,
  ),
  number(
    "Median time to recovery",
    "Median duration of the episodes that a step healed and that ended in the time range.",
    "s",
    `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM duration)) AS seconds
FROM proxywarden_episodes
WHERE NOT dry_run AND state = 'healed' AND ${ofPolicies("closed_at")}`,
  ),
  number(
    "Operator commands",
    "Operator commands, reloads, and expired pauses and holds in the time range.",
    "none",
    "SELECT count(*) AS commands FROM proxywarden_orders\nWHERE $__timeFilter(at)",
  ),
];

const operatorPanels = () => [
  rows(
    "Operator commands and reloads",
    "Commands with their operator, newest first. These have no operator: a reload by SIGHUP, the end of an expired pause or hold, and a reload while no operators are configured.",
    `SELECT at AS "time", operator, command, node, action, detail
FROM proxywarden_orders
WHERE $__timeFilter(at) AND ${OF_NODE}
ORDER BY at DESC, seq DESC`,
  ),
  rows(
    "Approvals and rejections",
    "Actions that an operator approved or rejected, with their outcome, newest first.",
    `SELECT answered_at AS "time", answered_by AS operator, answer, id, action, node, policy, state, outcome
FROM proxywarden_actions
WHERE answer IS NOT NULL AND ${ofPolicies("answered_at")} AND ${OF_NODE}
ORDER BY answered_at DESC, number DESC`,
  ),
];

const actionPanels = () => [
  counts({
    ...half,
    title: "Actions by outcome",
    description: "Ended actions by outcome. Excludes dry runs.",
    queries: [
      {
        shape: "series",
        sql: `SELECT $__timeGroup(ended_at, $__interval) AS "time", action || ': ' || outcome AS metric, count(*) AS value
FROM proxywarden_actions
WHERE NOT dry_run AND outcome IS NOT NULL AND ${ofPolicies("ended_at")}
GROUP BY 1, 2
ORDER BY 1, 2`,
      },
    ],
  }),
  table({
    ...half,
    title: "Outcomes by policy",
    description: "Ended actions of each policy, and the share of them that were verified. Excludes dry runs.",
    unit: "none",
    queries: [
      {
        sql: `SELECT policy, action, count(*) AS actions,
  count(*) FILTER (WHERE outcome = 'verified') AS verified,
  count(*) FILTER (WHERE outcome = 'ineffective') AS ineffective,
  count(*) FILTER (WHERE outcome IN ('refused', 'failed')) AS "refused or failed",
  count(*) FILTER (WHERE in_doubt) AS "was in doubt",
  count(*) FILTER (WHERE outcome = 'verified')::float8 / count(*) AS "share verified"
FROM proxywarden_actions
WHERE NOT dry_run AND outcome IS NOT NULL AND ${ofPolicies("ended_at")}
GROUP BY policy, action
ORDER BY actions DESC, policy, action`,
      },
    ],
  }).overrideByName("share verified", [{ id: "unit", value: "percentunit" }]),
  rows(
    "Actions",
    "Actions of the selected policies and node, newest first, including dry runs and actions that were never sent.",
    `SELECT created_at AS "time", id, action, node, region, policy, step, dry_run, state, outcome, proof, sent_at, ended_at, detail
FROM proxywarden_actions
WHERE ${ofPolicies("created_at")} AND ${OF_NODE}
ORDER BY created_at DESC, number DESC`,
  ),
];

const episodePanels = () => [
  timeSeries({
    ...half,
    title: "Duration of episodes",
    description: "Median duration of the episodes that ended, by policy. Excludes dry runs.",
    unit: "s",
    queries: [
      {
        shape: "series",
        sql: `SELECT $__timeGroup(closed_at, $__interval) AS "time", policy AS metric,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM duration)) AS value
FROM proxywarden_episodes
WHERE NOT dry_run AND ${ofPolicies("closed_at")}
GROUP BY 1, 2
ORDER BY 1, 2`,
      },
    ],
  }),
  counts({
    ...half,
    title: "Episodes by end",
    description: "Episodes that ended, by how they ended; docs/remediation.md explains the states. Excludes dry runs.",
    queries: [
      {
        shape: "series",
        sql: `SELECT $__timeGroup(closed_at, $__interval) AS "time", state AS metric, count(*) AS value
FROM proxywarden_episodes
WHERE NOT dry_run AND ${ofPolicies("closed_at")}
GROUP BY 1, 2
ORDER BY 1, 2`,
      },
    ],
  }),
  rows(
    "Episodes",
    "Episodes of the selected policies and node that were open in the time range, newest first. Seconds: duration of the episode; if it is open, so far.",
    `SELECT opened_at AS "time", id, node, region, policy, dry_run, state, steps_sent, closed_at,
  extract(epoch FROM coalesce(duration, now() - opened_at))::float8 AS seconds
FROM proxywarden_episodes
WHERE opened_at <= $__timeTo() AND coalesce(closed_at, now()) >= $__timeFrom() AND policy IN ($policy) AND ${OF_NODE}
ORDER BY opened_at DESC, number DESC`,
  ).overrideByName("seconds", [{ id: "unit", value: "s" }]),
];

const decisionPanels = () => [
  counts({
    ...whole,
    title: "Holds by reason",
    description: "Decisions to hold a node, by reason. A decision with two reasons counts under both.",
    queries: [
      {
        shape: "series",
        sql: `SELECT $__timeGroup(at, $__interval) AS "time", reason AS metric, count(*) AS value
FROM proxywarden_decisions, unnest(reasons) AS reason
WHERE verdict = 'hold' AND ${ofPolicies("at")} AND ${OF_NODE}
GROUP BY 1, 2
ORDER BY 1, 2`,
      },
    ],
  }),
  rows(
    "Decisions",
    "Decisions on the selected node and policies, newest first, with every reason. Enter the node's id above.",
    `SELECT at AS "time", node, policy, verdict, array_to_string(reasons, ', ') AS reasons, mode, step, episode, detail,
  evidence::text AS evidence
FROM proxywarden_decisions
WHERE ${ofPolicies("at")} AND ${OF_NODE}
ORDER BY at DESC, seq DESC`,
  ),
];
