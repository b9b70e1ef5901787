import type { Scenario } from "../../model/scenario.ts";

/** Scopes that a key may carry (spec, section 5). No endpoint needs the last one: its operations are not shown. */
export const SCOPES = ["nodes:read", "nodes:write", "sessions:read", "sessions:write"] as const;
export type Scope = (typeof SCOPES)[number];

/** The known keys, each with its scopes. */
export type Keys = ReadonlyMap<string, ReadonlySet<string>>;

/** The keys of a scenario. */
export const createKeys = (keys: Scenario["keys"]): Keys =>
  new Map(keys.map(({ key, scopes }) => [key, new Set(scopes)]));

/** The key of an Authorization header in the form `Bearer KEY` (spec, section 5); null if it has another form. */
export function bearerKey(authorization: string | undefined): string | null {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? null;
}
