import type { Cell } from "./cell.ts";
import { runContest } from "./contest.ts";

// In a process of its own: a cell after the other, so that two processors play two at a time.
process.on("message", async (cell: Cell) => process.send?.(await runContest(cell)));
