import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readPageFiles } from "../src/web/ui/page-files.ts";

/** Where the built package has the page, in its folder. */
const PAGE_FOLDER_IN_PACKAGE = "web/ui/page";

/**
 * Puts the status page into the built package: its scripts have lost their types as they lose them in a checkout, so what
 * is tested is what is shipped.
 */
export async function writeStatusPage(folder: string): Promise<void> {
  const target = join(folder, PAGE_FOLDER_IN_PACKAGE);
  for (const [name, text] of await readPageFiles()) {
    mkdirSync(dirname(join(target, name)), { recursive: true });
    writeFileSync(join(target, name), text);
  }
}

if (import.meta.main) await writeStatusPage(process.argv[2] ?? "dist");
