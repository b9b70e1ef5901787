import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Why a store could not be made in `folder`, or null: it, or the nearest folder above it that exists, must be one that
 * this user may write to. Nothing is made by looking.
 */
export function stateFolderProblem(folder: string): string | null {
  const existing = nearestExisting(folder);
  try {
    if (!statSync(existing).isDirectory()) return `${existing} is no folder`;
    accessSync(existing, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return `this user may not write to ${existing}: ${(error as NodeJS.ErrnoException).code}`;
  }
}

function nearestExisting(folder: string): string {
  if (existsSync(folder) || dirname(folder) === folder) return folder;
  return nearestExisting(dirname(folder));
}
