import type { Dashboard, DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { formatJson, type GeneratedFile, writeGeneratedFiles } from "../scripts/generated-files.ts";
import { auditDashboard } from "./audit.ts";
import { daemonDashboard } from "./daemon.ts";
import { networkDashboard } from "./network.ts";
import { nodeDashboard } from "./node.ts";

/** A dashboard as Grafana reads it. */
interface CompiledDashboard {
  /** Its file below `grafana/dashboards`. */
  readonly file: string;
  readonly dashboard: Dashboard;
}

/** The schema version of the Grafana in compose.yaml, which is older than the builder. */
const SCHEMA_VERSION = 41;

/** Every dashboard. */
export const compiledDashboards = (): readonly CompiledDashboard[] => [
  { file: "audit.json", dashboard: buildDashboard(auditDashboard()) },
  { file: "daemon.json", dashboard: buildDashboard(daemonDashboard()) },
  { file: "network.json", dashboard: buildDashboard(networkDashboard()) },
  { file: "node.json", dashboard: buildDashboard(nodeDashboard()) },
];

/** The files of the dashboards. */
export const dashboardFiles = (): readonly GeneratedFile[] =>
  compiledDashboards().map(({ file, dashboard }) => ({
    path: `grafana/dashboards/${file}`,
    content: () => formatJson(dashboard),
  }));

function buildDashboard(builder: DashboardBuilder): Dashboard {
  const dashboard = builder.build();
  // The builder would move links and the switches of annotations into a menu.
  for (const each of [...(dashboard.annotations.list ?? []), ...(dashboard.links ?? [])]) delete each.placement;
  // Links and pictures refer to panels by id, which depends only on the order of the panels.
  const panels = (dashboard.panels ?? []).flatMap((panel) => ("panels" in panel ? [panel, ...panel.panels] : [panel]));
  for (const [index, panel] of panels.entries()) panel.id = index + 1;
  dashboard.schemaVersion = SCHEMA_VERSION;
  return dashboard;
}

if (import.meta.main) writeGeneratedFiles(dashboardFiles(), "dashboards", process.argv.slice(2));
