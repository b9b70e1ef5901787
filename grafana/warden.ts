import { BigValueTextMode } from "@grafana/grafana-foundation-sdk/common";
import { type DashboardBuilder, RowBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, UIDS } from "./board.ts";
import { NONE_STEPS, steps, truth } from "./palette.ts";
import { stat } from "./panel.ts";
import { pick } from "./query.ts";
import { budgetPanels } from "./wardenbudget.ts";
import { collectPanels, processPanels } from "./wardencollect.ts";
import { healingPanels } from "./wardenhealing.ts";

/** The daemon itself: what it may spend, how fresh what it sees is, what it decides and does. */
export function wardenBoard(): DashboardBuilder {
  const dashboard = board({
    uid: UIDS.warden,
    title: "Proxywarden",
    description: "The daemon itself: its budget, how fresh what it sees is, and what it decides and does.",
    from: "now-6h",
  });
  for (const panel of glance()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Budget"));
  for (const panel of budgetPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Freshness"));
  for (const panel of collectPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Healing"));
  for (const panel of healingPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("The process"));
  for (const panel of processPanels()) dashboard.withPanel(panel);
  return dashboard;
}

type Mapping = ReturnType<typeof truth>;

const flag = (title: string, description: string, expr: string, mapping: Mapping) =>
  stat({ width: 3, height: 4, title, description, unit: "none", queries: [{ expr }] }).mappings([mapping]);

const glance = () => [
  flag(
    "Trust",
    "Whether what is seen is to be believed. While it is not, no node is touched.",
    `min(${pick("proxywarden_trusted")})`,
    truth("trusted", "not trusted", 1),
  ),
  flag(
    "Pause",
    "Whether a person paused all actions; `proxywarden resume` ends it.",
    `max(${pick("proxywarden_paused")})`,
    truth("paused", "not paused", 0),
  ),
  flag(
    "Breaker",
    "Open: too many nodes fired, and no node is touched until a person resets it.",
    `max(${pick("proxywarden_breaker_open")})`,
    truth("open", "closed", 0),
  ),
  flag(
    "Journal",
    "Whether the journal takes writes. While it does not, no node is touched.",
    `min(${pick("proxywarden_journal_writable")})`,
    truth("writable", "not writable", 1),
  ),
  flag(
    "Configuration",
    "Whether the last reload succeeded. If not, the configuration from before is in force. Absent before the first.",
    `min(${pick("proxywarden_config_last_reload_successful")})`,
    truth("in force", "refused", 1),
  ),
  stat({
    width: 3,
    height: 4,
    title: "429 in a day",
    description:
      "Calls that the service refused for exceeded limits. Anything but none is a defect, or another user of the key.",
    unit: "none",
    queries: [{ expr: `sum(increase(${pick("proxywarden_ratelimit_exceeded_total")}[1d]))` }],
  }).thresholds(NONE_STEPS),
  stat({
    width: 3,
    height: 4,
    title: "Running since",
    description: "When the process began.",
    unit: "dateTimeFromNow",
    queries: [{ expr: `min(${pick("process_start_time_seconds")}) * 1000` }],
  }).thresholds(steps("text")),
  stat({
    width: 3,
    height: 4,
    title: "Version",
    description: "The version that runs.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_build_info"), legend: "{{version}}" }],
  })
    .thresholds(steps("text"))
    .textMode(BigValueTextMode.Name),
];
