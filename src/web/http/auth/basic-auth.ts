import { createHmac, randomBytes } from "node:crypto";
import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import type { Bcrypt } from "./bcrypt.ts";
import { createFailedAttempts } from "./failed-attempts.ts";

/**
 * What a user and a password come to. `missing`: none were given; `throttled`: they were not looked at, after too many
 * wrong ones of this client; `busy`: nor were they, for too many others wait to be.
 */
export type LoginResult =
  | { readonly kind: "granted" | "missing" | "wrong" }
  | { readonly kind: "throttled" | "busy"; readonly retryAfterMs: DurationMs };

/** Tells users from others, by basic auth (RFC 7617). */
export interface UserAuth {
  /** At once where the password was right before. Rejects where it can't be told. `users`: bcrypt hashes by name. */
  authenticate(
    authorization: string | undefined,
    users: ReadonlyMap<string, string>,
    client: string,
  ): LoginResult | Promise<LoginResult>;
  close(): Promise<void>;
}

/** Right passwords that are remembered: a scrape doesn't pay for bcrypt. Users are few. */
const CACHED_LOGINS_MAX = 100;
/** Checks that wait for their turn: at a tenth of a second each, more would wait for longer than a scraper does. */
const PENDING_CHECKS_MAX = 32;
const BUSY_RETRY_MS: DurationMs = SECOND_MS;

/** Salt and digest of a bcrypt hash without a known password. Unknown users are compared with it, so that the response time does not reveal user names. */
const DUMMY_HASH_BODY = "mN6ZyLvpCxaA9.vG7lJmeuDXHP1/fSoMm2m2B5Eui6VS0A1V.ypBm";

/** Creates basic auth with an empty cache of accepted logins. */
export function createUserAuth(bcrypt: Bcrypt, clock: Pick<Clock, "monotonic">): UserAuth {
  // What is remembered is of no use to whoever reads our memory later, and can't be told by how long it is looked for.
  const secret = randomBytes(32);
  const acceptedLogins = new Set<string>();
  const pendingChecks = new Map<string, Promise<boolean>>();
  const failedAttempts = createFailedAttempts(clock);

  /** Of an unknown user a hash of one of the users' costs, always the same one: he takes as long as if he were known. */
  function hashOf(user: string, users: ReadonlyMap<string, string>): string {
    const hashes = [...users.values()];
    const costPrefix = createHmac("sha256", secret).update(user).digest().readUInt32BE() % hashes.length;
    return users.get(user) ?? `${hashes[costPrefix]!.slice(0, 7)}${DUMMY_HASH_BODY}`;
  }

  function cacheLogin(key: string): void {
    acceptedLogins.delete(key);
    acceptedLogins.add(key);
    const [oldest] = acceptedLogins;
    if (acceptedLogins.size > CACHED_LOGINS_MAX && oldest !== undefined) acceptedLogins.delete(oldest);
  }

  async function check(key: string, password: string, hash: string): Promise<boolean> {
    const checked = bcrypt.matches(password, hash);
    pendingChecks.set(key, checked);
    try {
      return await checked;
    } finally {
      pendingChecks.delete(key);
    }
  }

  return {
    authenticate(authorization, users, client) {
      const given = parseCredentials(authorization);
      if (given === null) return { kind: "missing" };
      const hash = hashOf(given.user, users);
      const key = loginKey(secret, given, hash);
      const isKnown = users.has(given.user);
      if (isKnown && acceptedLogins.has(key)) {
        cacheLogin(key);
        return { kind: "granted" };
      }
      const conclude = (isSame: boolean): LoginResult => ({ kind: isSame && isKnown ? "granted" : "wrong" });
      const same = pendingChecks.get(key);
      if (same !== undefined) return same.then(conclude);
      const retryAfterMs = failedAttempts.begin(client);
      if (retryAfterMs > 0) return { kind: "throttled", retryAfterMs };
      if (pendingChecks.size >= PENDING_CHECKS_MAX) {
        failedAttempts.forgive(client);
        return { kind: "busy", retryAfterMs: BUSY_RETRY_MS };
      }
      return check(key, given.password, hash).then((isSame) => {
        const login = conclude(isSame);
        if (login.kind === "granted") {
          failedAttempts.forgive(client);
          cacheLogin(key);
        }
        return login;
      });
    },
    close: () => bcrypt.close(),
  };
}

interface Credentials {
  readonly user: string;
  readonly password: string;
}

/** Null: none, or in another scheme. */
function parseCredentials(authorization: string | undefined): Credentials | null {
  const encoded = /^basic +([\w+/-]+=*) *$/i.exec(authorization ?? "")?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 ? null : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Another hash of the same user is another key: who was right by the old one is checked by the new one. */
const loginKey = (secret: Uint8Array, { user, password }: Credentials, hash: string): string =>
  createHmac("sha256", secret)
    .update(JSON.stringify([user, hash, password]))
    .digest("base64");
