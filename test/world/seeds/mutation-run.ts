import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HOUR_MS } from "../../../src/base/duration.ts";
import { STEP_MS } from "../daemon/simulation.ts";
import { ANY_INVARIANT } from "../runs/world-run.ts";
import { MUTATIONS, type Mutation } from "./mutations.ts";
import { createSeedPool, type SeedPool } from "./seed-pool.ts";
import type { SeedTask } from "./seed-task.ts";

const ROOT = join(import.meta.dirname, "../../..");
/** Folders that a run imports from. */
const FOLDERS = ["src", "test"];

/**
 * Runs each deliberate fault until an invariant is violated. Returns whether there was at least one fault and all were
 * caught. `only` is a part of the names of the faults to run, or null for all.
 */
export async function runMutations(workers: number, only: string | null): Promise<boolean> {
  const selected = MUTATIONS.filter(({ name }) => only === null || name.includes(only));
  const unmutated = createSeedPool(workers);
  const queue = [...selected];
  let found = 0;
  const work = async (): Promise<void> => {
    for (let mutation = queue.shift(); mutation !== undefined; mutation = queue.shift()) {
      const began = performance.now();
      const caught = await catchMutation(mutation, (task) => unmutated.run(task));
      const seconds = ((performance.now() - began) / 1_000).toFixed(0);
      if (caught !== null) found++;
      const outcome = caught === null ? "NOT CAUGHT" : `caught by "${caught.invariant}" with seed ${caught.seed}`;
      print(`${mutation.name}: ${outcome} (${seconds} s)`);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  unmutated.close();
  print(`${found} of ${selected.length} deliberate faults are caught`);
  return selected.length > 0 && found === selected.length;
}

/** Returns the first invariant that only the mutated tree violates, with its seed, or null if there is none. */
async function catchMutation(
  { edits, seeds, nodes, days, hours, race }: Mutation,
  runUnmutated: SeedPool["run"],
): Promise<{ invariant: string; seed: number } | null> {
  const folder = copyTree(edits);
  const pool = createSeedPool(1, folder);
  try {
    for (const seed of seeds) {
      const until = { invariant: ANY_INVARIANT, ms: (hours ?? days * 24) * HOUR_MS };
      const task: SeedTask = { seed, nodes, days, keep: null, until, ...(race && { race }) };
      const [violation] = (await pool.run(task)).violations;
      if (violation === undefined) continue;
      const { invariant, at } = violation;
      const { violations } = await runUnmutated({ ...task, until: { ms: at + STEP_MS } });
      if (!violations.some((violation) => violation.invariant === invariant)) return { invariant, seed };
    }
    return null;
  } finally {
    pool.close();
    rmSync(folder, { recursive: true });
  }
}

/** Copies the tree to a new folder and applies the edits there. Throws if an edit does not match the source. */
function copyTree(edits: Mutation["edits"]): string {
  const folder = mkdtempSync(join(tmpdir(), "proxywarden-mutation-"));
  for (const name of FOLDERS) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
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
