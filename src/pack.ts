import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readPageFiles } from "./web/pagefiles.ts";

/** Where the built package has the page, in its folder. */
const PAGE_IN_PACKAGE = "web/page";

/**
 * Puts the status page into the built package: its scripts have lost their types as they lose them in a checkout, so what
 * is tested is what is shipped.
 */
export async function packPage(folder: string): Promise<void> {
  const target = join(folder, PAGE_IN_PACKAGE);
  mkdirSync(target, { recursive: true });
  for (const [name, text] of await readPageFiles()) writeFileSync(join(target, name), text);
}

if (import.meta.main) await packPage(process.argv[2] ?? "dist");
