import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Dashboard, DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
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

/** The text of a dashboard's file. */
export const boardText = ({ dashboard }: CompiledBoard): string => `${JSON.stringify(dashboard, null, 2)}\n`;

/** Those whose file is not what it would be if it were written now. */
export const staleBoards = (): readonly CompiledBoard[] =>
  compiledBoards().filter((board) => readText(pathOf(board)) !== boardText(board));

function finished(board: DashboardBuilder): Dashboard {
  const dashboard = board.build();
  // The builder would put the switches of annotations away into a menu.
  for (const annotation of dashboard.annotations.list ?? []) delete annotation.placement;
  // Links and pictures find panels by their numbers, which stay for as long as their order does.
  for (const [index, panel] of (dashboard.panels ?? []).entries()) panel.id = index + 1;
  return dashboard;
}

const FOLDER = fileURLToPath(new URL("dashboards/", import.meta.url));

const pathOf = ({ file }: CompiledBoard): string => FOLDER + file;

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Writes every stale dashboard; with `--check` only names them, and is unhappy if there are any. */
function main(options: readonly string[]): void {
  const unknown = options.filter((option) => option !== "--check");
  if (unknown.length > 0) {
    console.error(`unknown option ${unknown.join(" ")}; the only one is --check`);
    process.exitCode = 2;
    return;
  }
  const check = options.includes("--check");
  for (const board of staleBoards()) {
    if (!check) {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(pathOf(board), boardText(board));
    }
    const name = `grafana/dashboards/${board.file}`;
    console.log(check ? `${name} is out of date: run npm run dashboards` : `${name} written`);
    if (check) process.exitCode = 1;
  }
}

if (import.meta.main) main(process.argv.slice(2));
