import { createHash, timingSafeEqual } from "node:crypto";
import type { DurationMs } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import type { Operator } from "../../../model/remediation/operator-command.ts";
import { createFailedAttempts } from "../request-rates.ts";

/** Result of an authentication. `throttled` is a wrong token after too many other ones. */
export type AuthResult =
  | { readonly kind: "granted"; readonly operator: string }
  | { readonly kind: "missing" | "wrong" }
  | { readonly kind: "throttled"; readonly retryAfterMs: DurationMs };

/** Wrong tokens are counted across all clients. */
const ALL_CLIENTS = "";

/** Creates the authentication of operators by bearer token. A valid token is accepted after any number of wrong ones. */
export function createOperatorAuth(clock: Pick<Clock, "monotonic">) {
  const failedAttempts = createFailedAttempts(clock);
  /** Finds the operator of an Authorization header. */
  return (authorization: string | undefined, operators: readonly Operator[]): AuthResult => {
    const given = /^bearer +(.+)$/i.exec(authorization ?? "")?.[1];
    if (given === undefined) return { kind: "missing" };
    const known = findOperator(given, operators);
    if (known !== null) return { kind: "granted", operator: known };
    const retryAfterMs = failedAttempts.begin(ALL_CLIENTS);
    if (retryAfterMs > 0) return { kind: "throttled", retryAfterMs };
    // The token file may have changed since it was last read.
    for (const { token } of operators) token.refresh();
    const renewed = findOperator(given, operators);
    if (renewed === null) return { kind: "wrong" };
    failedAttempts.forgive(ALL_CLIENTS);
    return { kind: "granted", operator: renewed };
  };
}

/**
 * Returns the operator with a token, or null if there is none. Compares with every token, so that the response time
 * reveals nothing.
 */
function findOperator(given: string, operators: readonly Operator[]): string | null {
  const [found] = operators.filter(({ token }) => timingSafeEqual(digest(given), digest(token.value())));
  return found?.name ?? null;
}

// HTTP trims header values, so spaces around the token in its file are ignored as well.
const digest = (token: string): Buffer => createHash("sha256").update(token.trim()).digest();
