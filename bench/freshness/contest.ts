import type { Cell } from "./cell.ts";
import { runOracle } from "./oracle.ts";
import { runOurs } from "./ours.ts";
import { runEven, runNaive } from "./pollers.ts";
import { writeScript } from "./script.ts";
import type { Contender, Showing } from "./showing.ts";

/** How all did in one cell. */
export interface Contest {
  readonly cell: Cell;
  readonly showings: Readonly<Record<Contender, Showing>>;
  /** What it took of a processor. */
  readonly cpuSeconds: number;
}

/** Lets all contenders play the same script. */
export async function runContest(cell: Cell): Promise<Contest> {
  const before = process.cpuUsage();
  const script = writeScript(cell);
  const showings = {
    proxywarden: await runOurs(cell, script),
    even: runEven(cell, script),
    naive: runNaive(cell, script),
    oracle: runOracle(cell, script),
  };
  const { user, system } = process.cpuUsage(before);
  return { cell, showings, cpuSeconds: (user + system) / 1e6 };
}
