import { createHmac, randomBytes } from "node:crypto";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import { createFailedAttempts } from "../request-rates.ts";
import type { BcryptMatches } from "./bcrypt.ts";

/**
 * Result of a login. If it is `throttled`, it was not checked because of too many wrong passwords of this client. If it
 * is `busy`, it was not checked because too many checks are pending.
 */
export type LoginResult =
  | { readonly kind: "granted" | "missing" | "wrong" }
  | { readonly kind: "throttled" | "busy"; readonly retryAfterMs: DurationMs };

/** Maximum number of accepted logins that are remembered, so that a scrape doesn't run bcrypt. */
const CACHED_LOGINS_MAX = 100;
/** Maximum number of pending checks. They run one at a time, so with more of them a scrape could time out. */
const PENDING_CHECKS_MAX = 32;
const BUSY_RETRY_MS: DurationMs = SECOND_MS;

/**
 * Salt and digest of a bcrypt hash without a known password. Unknown users are checked against it, so that the response
 * time does not reveal user names.
 */
const DUMMY_HASH_BODY = "mN6ZyLvpCxaA9.vG7lJmeuDXHP1/fSoMm2m2B5Eui6VS0A1V.ypBm";

/** Creates basic auth (RFC 7617) with an empty cache of accepted logins. */
export function createUserAuth(bcryptMatches: BcryptMatches, clock: Pick<Clock, "monotonic">) {
  // The cache holds keyed digests, so neither a memory dump nor the time of a lookup reveals a password.
  const secret = randomBytes(32);
  const acceptedLogins = new Set<string>();
  const pendingChecks = new Map<string, Promise<boolean>>();
  const failedAttempts = createFailedAttempts(clock);

  /** Returns the hash of a user. An unknown user always gets the same one, with the cost of a known hash. */
  function hashOf(user: string, users: ReadonlyMap<string, string>): string {
    const hashes = [...users.values()];
    const index = createHmac("sha256", secret).update(user).digest().readUInt32BE() % hashes.length;
    return users.get(user) ?? `${hashes[index]!.slice(0, 7)}${DUMMY_HASH_BODY}`;
  }

  function cacheLogin(key: string): void {
    acceptedLogins.delete(key);
    acceptedLogins.add(key);
    const [oldest] = acceptedLogins;
    if (acceptedLogins.size > CACHED_LOGINS_MAX && oldest !== undefined) acceptedLogins.delete(oldest);
  }

  function startCheck(key: string, password: string, hash: string): Promise<boolean> {
    const check = bcryptMatches(password, hash).finally(() => pendingChecks.delete(key));
    pendingChecks.set(key, check);
    return check;
  }

  /** Checks an Authorization header. `users` are bcrypt hashes by name, at least one. Rejects if bcrypt fails. */
  return async (
    authorization: string | undefined,
    users: ReadonlyMap<string, string>,
    client: string,
  ): Promise<LoginResult> => {
    const given = parseCredentials(authorization);
    if (given === null) return { kind: "missing" };
    const hash = hashOf(given.user, users);
    const key = loginKey(secret, given, hash);
    const isKnown = users.has(given.user);
    if (isKnown && acceptedLogins.has(key)) {
      cacheLogin(key);
      return { kind: "granted" };
    }
    const pending = pendingChecks.get(key);
    if (pending !== undefined) return { kind: (await pending) && isKnown ? "granted" : "wrong" };
    const retryAfterMs = failedAttempts.begin(client);
    if (retryAfterMs > 0) return { kind: "throttled", retryAfterMs };
    if (pendingChecks.size >= PENDING_CHECKS_MAX) {
      failedAttempts.forgive(client);
      return { kind: "busy", retryAfterMs: BUSY_RETRY_MS };
    }
    const matches = await startCheck(key, given.password, hash).catch((error: unknown) => {
      failedAttempts.forgive(client);
      throw error;
    });
    if (!matches || !isKnown) return { kind: "wrong" };
    failedAttempts.forgive(client);
    cacheLogin(key);
    return { kind: "granted" };
  };
}

/** Parses an Authorization header. Returns null if it has no credentials or another scheme. */
function parseCredentials(authorization: string | undefined) {
  const encoded = /^basic +([\w+/-]+=*) *$/i.exec(authorization ?? "")?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 ? null : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** The key depends on the hash, so that a login is checked again when the hash of its user changes. */
const loginKey = (secret: Uint8Array, { user, password }: Record<"user" | "password", string>, hash: string): string =>
  createHmac("sha256", secret)
    .update(JSON.stringify([user, hash, password]))
    .digest("base64");
