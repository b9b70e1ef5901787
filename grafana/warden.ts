import { BigValueTextMode } from "@grafana/grafana-foundation-sdk/common";
import { type DashboardBuilder, RowBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, UIDS } from "./board.ts";
import { NONE_STEPS, steps, truth } from "./palette.ts";
import { stat } from "./panel.ts";
import { pick } from "./query.ts";
import { budgetPanels } from "./wardenbudget.ts";
import { collectPanels, processPanels } from "./wardencollect.ts";
import { healingPanels } from "./wardenhealing.ts";

/** The daemon: API budget, data freshness, decisions and actions. */
export function wardenBoard(): DashboardBuilder {
  const dashboard = board({
    uid: UIDS.warden,
    title: "Proxywarden",
    description: "The daemon: API budget, data freshness, decisions and actions.",
    from: "now-6h",
  });
  for (const panel of glance()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("API budget"));
  for (const panel of budgetPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Freshness"));
  for (const panel of collectPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Remediation"));
  for (const panel of healingPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Process"));
  for (const panel of processPanels()) dashboard.withPanel(panel);
  return dashboard;
}

type Mapping = ReturnType<typeof truth>;

const flag = (title: string, description: string, expr: string, mapping: Mapping) =>
  stat({ width: 3, height: 4, title, description, unit: "none", queries: [{ expr }] }).mappings([mapping]);

const glance = () => [
  flag(
    "Trust",
    "Whether fleet data is trusted. While it is not, no node is acted on.",
    `min(${pick("proxywarden_trusted")})`,
    truth("trusted", "not trusted", 1),
  ),
  flag(
    "Pause",
    "Whether an operator paused all actions. `proxywarden resume` ends the pause.",
    `max(${pick("proxywarden_paused")})`,
    truth("paused", "not paused", 0),
  ),
  flag(
    "Circuit breaker",
    "Open: too many nodes fired, and no node is acted on until an operator runs `proxywarden reset-breaker`.",
    `max(${pick("proxywarden_breaker_open")})`,
    truth("open", "closed", 0),
  ),
  flag(
    "Journal",
    "Whether the journal can be written. While it can't, no node is acted on.",
    `min(${pick("proxywarden_journal_writable")})`,
    truth("writable", "not writable", 1),
  ),
  flag(
    "Configuration",
    "Whether the last reload succeeded. If not, the previous configuration stays active. Absent before the first reload.",
    `min(${pick("proxywarden_config_last_reload_successful")})`,
    truth("active", "rejected", 1),
  ),
  stat({
    width: 3,
    height: 4,
    title: "429 in the last day",
    description:
      "Calls that the service answered with 429. Any is a defect, a wrong limit, or another client with the same key.",
    unit: "none",
    queries: [{ expr: `sum(increase(${pick("proxywarden_ratelimit_exceeded_total")}[1d]))` }],
  }).thresholds(NONE_STEPS),
  stat({
    width: 3,
    height: 4,
    title: "Running since",
    description: "Start time of the process.",
    unit: "dateTimeFromNow",
    queries: [{ expr: `min(${pick("process_start_time_seconds")}) * 1000` }],
  }).thresholds(steps("text")),
  stat({
    width: 3,
    height: 4,
    title: "Version",
    description: "Version of the daemon.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_build_info"), legend: "{{version}}" }],
  })
    .thresholds(steps("text"))
    .textMode(BigValueTextMode.Name),
];
