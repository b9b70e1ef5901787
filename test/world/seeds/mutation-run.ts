import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HOUR_MS } from "../../../src/base/duration.ts";
import { STEP_MS } from "../daemon/simulation.ts";
import { ANY_INVARIANT } from "../runs/world-run.ts";
import type { SeedTask } from "../seed-task.ts";
import { MUTATIONS, type Mutation } from "./mutations.ts";
import { createSeedPool } from "./seed-pool.ts";

const ROOT = join(import.meta.dirname, "../../..");
/** What a run needs of the tree. */
const FOLDERS = ["src", "test"];

/** Runs every deliberate fault until a law catches it. Returns whether all were caught. `only`: the name of one; null: all. */
export async function runMutations(workers: number, only: string | null): Promise<boolean> {
  const wanted = MUTATIONS.filter(({ name }) => only === null || name.includes(only));
  const unmutated = createSeedPool(workers);
  const queue = [...wanted];
  let found = 0;
  const work = async (): Promise<void> => {
    for (let mutation = queue.shift(); mutation !== undefined; mutation = queue.shift()) {
      const began = performance.now();
      const invariant = await catchMutation(mutation, (task) => unmutated.run(task));
      const seconds = ((performance.now() - began) / 1_000).toFixed(0);
      if (invariant !== null) found++;
      print(
        `${mutation.name}: ${invariant === null ? "NOT CAUGHT" : `caught by "${invariant.law}" with seed ${invariant.seed}`} (${seconds} s)`,
      );
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  unmutated.close();
  print(`${found} of ${wanted.length} deliberate faults are caught`);
  return found === wanted.length;
}

/** The first law that a changed tree breaks with a seed with which the sound one breaks none; null: none. */
async function catchMutation(
  { edits, seeds, nodes, days, hours }: Mutation,
  runSound: ReturnType<typeof createSeedPool>["run"],
): Promise<{ law: string; seed: number } | null> {
  const folder = copyTree(edits);
  const pool = createSeedPool(1, folder);
  try {
    for (const seed of seeds) {
      const task: SeedTask = {
        seed,
        nodes,
        days,
        keep: null,
        until: { law: ANY_INVARIANT, ms: (hours ?? days * 24) * HOUR_MS },
      };
      const [breach] = (await pool.run(task)).violations;
      if (breach === undefined) continue;
      const { invariant, at } = breach;
      // A law that the sound tree breaks as well says nothing.
      if (
        !(await runSound({ ...task, until: { ms: at + STEP_MS } })).violations.some(
          (each) => each.invariant === invariant,
        )
      )
        return { law: invariant, seed };
    }
    return null;
  } finally {
    pool.close();
    rmSync(folder, { recursive: true });
  }
}

/** Copies what a run needs to a new folder, and edits it there. Throws where an edit does not fit the source any more. */
function copyTree(edits: Mutation["edits"]): string {
  const folder = mkdtempSync(join(tmpdir(), "proxywarden-mutation-"));
  for (const each of FOLDERS) cpSync(join(ROOT, each), join(folder, each), { recursive: true });
  cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  for (const { file, find, replace } of edits) {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    const count = text.split(find).length - 1;
    if (count !== 1) throw new Error(`${file} has the text of an edit ${count} times, not once: ${find}`);
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
  }
  return folder;
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
