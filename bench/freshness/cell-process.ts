import type { Cell } from "./cell.ts";
import { runCell } from "./cell-run.ts";

// A child process that runs one cell after another.
process.on("message", async (cell: Cell) => process.send?.(await runCell(cell)));
