import type { Dashboard, DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { formatJson, type GeneratedFile, writeGeneratedFiles } from "../scripts/generated-files.ts";
import { networkBoard } from "./network.ts";
import { nodeBoard } from "./node.ts";
import { wardenBoard } from "./warden.ts";

/** A dashboard as Grafana reads it. */
export interface CompiledBoard {
  /** Its file below `grafana/dashboards`. */
  readonly file: string;
  readonly dashboard: Dashboard;
}

/** Every dashboard. */
export const compiledBoards = (): readonly CompiledBoard[] => [
  { file: "network.json", dashboard: finished(networkBoard()) },
  { file: "node.json", dashboard: finished(nodeBoard()) },
  { file: "warden.json", dashboard: finished(wardenBoard()) },
];

/** The files of the dashboards. */
export const boardFiles = (): readonly GeneratedFile[] =>
  compiledBoards().map(({ file, dashboard }) => ({
    path: `grafana/dashboards/${file}`,
    content: () => formatJson(dashboard),
  }));

function finished(board: DashboardBuilder): Dashboard {
  const dashboard = board.build();
  // The builder would put the switches of annotations away into a menu.
  for (const annotation of dashboard.annotations.list ?? []) delete annotation.placement;
  // Links and pictures find panels by their numbers, which stay for as long as their order does.
  for (const [index, panel] of (dashboard.panels ?? []).entries()) panel.id = index + 1;
  return dashboard;
}

if (import.meta.main) writeGeneratedFiles(boardFiles(), "dashboards", process.argv.slice(2));
