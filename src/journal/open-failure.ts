import { fail } from "../base/result.ts";

/**
 * Why the store can't be opened. The message names the file or folder and what to do.
 * - `held`: another process uses it.
 * - `newer`: a later version of proxywarden wrote it.
 * - `damaged`: it is corrupt, or not a proxywarden database.
 * - `unusable`: the folder can't be read or written, or the database refuses access.
 * - `unreachable`: the database server does not answer now.
 * - `missing`, only when opened for reading: there is no store.
 * - `older`, only when opened for reading: an earlier version wrote it, and it was not migrated yet.
 */
export interface StoreFailure {
  readonly kind: "held" | "newer" | "damaged" | "unusable" | "unreachable" | "missing" | "older";
  readonly message: string;
}

/** Creates a failure. */
export const storeFailure = (
  kind: StoreFailure["kind"],
  message: string,
): { readonly ok: false; readonly error: StoreFailure } => fail({ kind, message });

/**
 * Returns why this proxywarden, which knows the schema up to version `known`, can't use a store of `version`, or null if
 * it can.
 */
export function newerVersionFailure(name: string, version: number, known: number): StoreFailure | null {
  if (version <= known) return null;
  const message = `${name} has schema version ${version}, and this proxywarden knows ${known} at most; run the version that wrote it, or a later one`;
  return { kind: "newer", message };
}

/** Like {@link newerVersionFailure}, for a store that is only read, and therefore not migrated. */
export function otherVersionFailure(name: string, version: number, known: number): StoreFailure | null {
  if (version >= known) return newerVersionFailure(name, version, known);
  const message = `${name} has schema version ${version}, and this proxywarden reads ${known}; start the daemon of this version on it once, which migrates it`;
  return { kind: "older", message };
}
