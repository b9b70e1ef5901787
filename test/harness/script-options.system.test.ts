import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const WORLD = join(import.meta.dirname, "../world/main.ts");
const OPTIONS =
  "the options are --seeds VALUE, --seed VALUE, --from VALUE, --days VALUE, --nodes VALUE, --workers VALUE, --keep VALUE, --mutations, --mutation VALUE\n";

test.each([
  [["--help"], `Unknown option '--help'; ${OPTIONS}`],
  [["--seeds"], `Option '--seeds <value>' argument missing; ${OPTIONS}`],
  [["--seeds", "all"], `--seeds must be a number, not "all"; ${OPTIONS}`],
])("a script with the options %j names all options in one line", (args, line) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [WORLD, ...args], { encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: "", stderr: line });
});
