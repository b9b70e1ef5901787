import { fail } from "../base/result.ts";

/**
 * Why a store can't be opened. The message names the file, folder or database.
 * - `held`: another process uses it.
 * - `unsupported`: a later version of proxywarden, or a build from before the first release, wrote it.
 * - `damaged`: it is corrupt, or not a proxywarden database.
 * - `unusable`: the folder can't be read or written, or the database or its URL can't be used.
 * - `unreachable`: the database server does not answer now.
 * - `missing`, only when opened for reading: there is no store.
 * - `older`, only when opened for reading: an earlier version wrote it, or it is empty, and it was not migrated yet.
 */
export interface StoreFailure {
  readonly kind: "held" | "unsupported" | "damaged" | "unusable" | "unreachable" | "missing" | "older";
  readonly message: string;
}

/** Returns a failure as a result. */
export const storeFailure = (
  kind: StoreFailure["kind"],
  message: string,
): { readonly ok: false; readonly error: StoreFailure } => fail({ kind, message });

/** The first and the last version of a schema that this version of proxywarden supports. */
interface KnownVersions {
  readonly first: number;
  readonly last: number;
}

/** Returns why a store of `version`, which is 0 if it is new, can't be used or migrated, or null if it can. */
export function unusableVersionFailure(
  name: string,
  version: number,
  { first, last }: KnownVersions,
): StoreFailure | null {
  const has = `${name} has schema version ${version}, but this version of proxywarden supports`;
  if (version > last)
    return { kind: "unsupported", message: `${has} ${last} at most; run the version that wrote it, or a later one` };
  if (version === 0 || version >= first) return null;
  const advice = `a build from before the first release wrote it; move it away, or see "Changes during development" in CHANGELOG.md for how to keep it`;
  return { kind: "unsupported", message: `${has} ${first} and later; ${advice}` };
}

/** Like {@link unusableVersionFailure}, for a store that is only read, and therefore not migrated. */
export function unreadableVersionFailure(name: string, version: number, known: KnownVersions): StoreFailure | null {
  const problem = unusableVersionFailure(name, version, known);
  if (problem !== null || version === known.last) return problem;
  const message = `${name} has schema version ${version}, but this version of proxywarden reads only ${known.last}; start the daemon of this version on it once, which migrates it`;
  return { kind: "older", message };
}
