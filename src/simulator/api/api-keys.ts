import type { Scenario } from "../../model/scenario.ts";

/** Scopes of a key (spec, section 5). No endpoint of the spec requires `sessions:write`. */
export const SCOPES = ["nodes:read", "nodes:write", "sessions:read", "sessions:write"] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes by key. */
export type Keys = ReadonlyMap<string, ReadonlySet<string>>;

/** Returns the keys of a scenario. */
export const createKeys = (keys: Scenario["keys"]): Keys =>
  new Map(keys.map(({ key, scopes }) => [key, new Set(scopes)]));

/** Returns the key of an Authorization header `Bearer KEY` (spec, section 5); null: another form. */
export function bearerKey(authorization: string | undefined): string | null {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? null;
}
