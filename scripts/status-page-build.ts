import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readPageFiles } from "../src/web/ui/page-files.ts";

/** Folder of the page in the built package. */
const PAGE_FOLDER_IN_PACKAGE = "web/ui/page";

/**
 * Writes the status page into a built package. Types are stripped in the same way as in a checkout, so the shipped page is
 * the tested one.
 */
async function writeStatusPage(folder: string): Promise<void> {
  const target = join(folder, PAGE_FOLDER_IN_PACKAGE);
  for (const [name, text] of await readPageFiles()) {
    mkdirSync(dirname(join(target, name)), { recursive: true });
    writeFileSync(join(target, name), text);
  }
}

if (import.meta.main) await writeStatusPage(process.argv[2] ?? "dist");
