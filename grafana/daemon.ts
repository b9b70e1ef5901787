import { BigValueTextMode } from "@grafana/grafana-foundation-sdk/common";
import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { budgetPanels } from "./daemon-budget.ts";
import { collectionPanels, processPanels } from "./daemon-collection.ts";
import { remediationPanels } from "./daemon-remediation.ts";
import { actionAnnotation, alertAnnotation, createDashboard, UIDS } from "./dashboard.ts";
import { booleanMapping, LEADER_NUMBERS, NONE_STEPS, steps } from "./palette.ts";
import { stat, stateTimeline } from "./panel.ts";
import { gainedWithin, selector } from "./query.ts";

/** The dashboard of the daemon: API budget, data freshness, decisions and actions. */
export const daemonDashboard = (): DashboardBuilder =>
  createDashboard({
    uid: UIDS.daemon,
    title: "Proxywarden",
    description: "The daemon: API budget, data freshness, decisions and actions.",
    from: "now-6h",
    annotations: [alertAnnotation(), actionAnnotation()],
    overview: overviewPanels(),
    rows: {
      "API budget": budgetPanels(),
      Freshness: collectionPanels(),
      Remediation: remediationPanels(),
      Process: processPanels(),
    },
  });

type Mapping = ReturnType<typeof booleanMapping>;

const flag = (title: string, description: string, expr: string, mapping: Mapping) =>
  stat({ width: 3, height: 4, title, description, unit: "none", queries: [{ expr }] }).mappings([mapping]);

const overviewPanels = () => [
  flag(
    "Trust",
    "Whether fleet data is trusted. While it is not, no node is acted on.",
    `min(${selector("proxywarden_trusted")})`,
    booleanMapping("trusted", "not trusted", 1),
  ),
  flag(
    "Pause",
    "Whether an operator paused all actions. `proxywarden resume` ends the pause.",
    `max(${selector("proxywarden_paused")})`,
    booleanMapping("paused", "not paused", 0),
  ),
  flag(
    "Circuit breaker",
    "Open: too many nodes fired or were lost, and no node is acted on until an operator runs `proxywarden reset-breaker`.",
    `max(${selector("proxywarden_breaker_open")})`,
    booleanMapping("open", "closed", 0),
  ),
  flag(
    "Journal",
    "Whether the journal can be written. While it can't, no node is acted on.",
    `min(${selector("proxywarden_journal_writable")})`,
    booleanMapping("writable", "not writable", 1),
  ),
  flag(
    "Configuration",
    "Whether the last reload succeeded. If not, the previous configuration stays active.",
    `min(${selector("proxywarden_config_last_reload_successful")})`,
    booleanMapping("active", "rejected", 1),
  ),
  stat({
    width: 3,
    height: 4,
    title: "429s in the last day",
    description:
      "Calls that the service answered with 429. Possible causes: another client with the same key, limits that are lower than configured, a gateway with a limit of its own, or a bug.",
    unit: "none",
    queries: [{ expr: gainedWithin("1d", "proxywarden_ratelimit_exceeded_total") }],
  }).thresholds(NONE_STEPS),
  stat({
    width: 3,
    height: 4,
    title: "Running since",
    description: "Start time of the process; of several daemons, the earliest.",
    unit: "dateTimeFromNow",
    queries: [{ expr: `min(${selector("process_start_time_seconds")}) * 1000` }],
  }).thresholds(steps("text")),
  stat({
    width: 3,
    height: 4,
    title: "Version",
    description: "Version of the daemon.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_build_info"), legend: "{{version}}" }],
  })
    .thresholds(steps("text"))
    .textMode(BigValueTextMode.Name),
  ...waitingPanels(),
  stateTimeline({
    width: 24,
    height: 5,
    title: "Leader",
    description:
      "Which daemon leads, if several share a PostgreSQL journal; the others stand by. A single daemon always leads. While no daemon leads, no node is acted on.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_leader"), legend: "{{instance}}" }],
  }).mappings([LEADER_NUMBERS]),
];

/** What waits for an operator, or may soon. */
const waitingPanels = () => [
  waiting(
    "Waiting for approval",
    "Actions that are waiting for an operator's approval. `proxywarden approvals` lists them.",
    `sum(${selector("proxywarden_approvals_waiting")})`,
  ),
  waiting(
    "Policies that fell back to dry_run",
    "Policies that healed too few nodes, and stay in dry_run until their text changes or an operator runs `proxywarden reset-breaker`.",
    `sum(${selector("proxywarden_policy_ineffective")})`,
  ),
  waiting(
    "Nodes given up",
    "Nodes that are still unhealthy after a policy gave up on them. Repair or replace them.",
    `sum(${selector("proxywarden_episodes", 'state="given_up"')})`,
  ),
  stat({
    ...quarter,
    title: "Longest hold",
    empty: "No policies",
    description: "Longest time for which any policy has held a node without an action.",
    unit: "s",
    queries: [{ expr: `max(${selector("proxywarden_longest_hold_seconds")})` }],
  }).thresholds(steps("green", [3_600, "orange"], [18_000, "red"])),
];

const quarter = { width: 6, height: 4 };

const waiting = (title: string, description: string, expr: string) =>
  stat({ ...quarter, title, empty: "No policies", description, unit: "none", queries: [{ expr }] }).thresholds(
    steps("green", [1, "orange"]),
  );
