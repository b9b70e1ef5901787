import type { Cell } from "./cell.ts";
import { runOracle } from "./oracle.ts";
import { runEven, runNaive } from "./pollers.ts";
import { runProxywarden } from "./proxywarden.ts";
import type { Contender, Result } from "./result.ts";
import { createScript } from "./script.ts";

/** The results of all contenders in one cell. */
export interface CellRun {
  readonly cell: Cell;
  readonly results: Readonly<Record<Contender, Result>>;
  readonly cpuSeconds: number;
}

/** Runs all contenders with the same faults. */
export async function runCell(cell: Cell): Promise<CellRun> {
  const before = process.cpuUsage();
  const script = createScript(cell);
  const results = {
    proxywarden: await runProxywarden(cell, script),
    even: runEven(cell, script),
    naive: runNaive(cell, script),
    oracle: runOracle(cell, script),
  };
  const { user, system } = process.cpuUsage(before);
  return { cell, results, cpuSeconds: (user + system) / 1e6 };
}
