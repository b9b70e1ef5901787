import { createHash, timingSafeEqual } from "node:crypto";
import { type DurationMs, MINUTE_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import type { Operator } from "../../../model/remediation/operator-command.ts";
import type { MonotonicMs } from "../../../model/time.ts";

/**
 * Whose token was given. `missing`: none was; `wrong`: that of no operator; `throttled`: that of no operator, after too
 * many others.
 */
export type AuthResult =
  | { readonly kind: "granted"; readonly operator: string }
  | { readonly kind: "missing" | "wrong" }
  | { readonly kind: "throttled"; readonly retryAfterMs: DurationMs };

/** Authenticates operators by bearer token. */
export interface OperatorAuth {
  /** `authorization`: the header as it came. */
  authenticate(authorization: string | undefined, operators: readonly Operator[]): AuthResult;
}

/** Wrong tokens that are looked at in a minute. The right one is let in after any number of them. */
const WRONG_TOKENS_MAX = 10;
const WRONG_TOKENS_WINDOW_MS: DurationMs = MINUTE_MS;

/** Creates operator authentication without failed attempts. */
export function createOperatorAuth(clock: Pick<Clock, "monotonic">): OperatorAuth {
  let wrongAt: readonly MonotonicMs[] = [];
  return {
    authenticate(authorization, operators) {
      const given = /^bearer +(.+)$/i.exec(authorization ?? "")?.[1];
      if (given === undefined) return { kind: "missing" };
      const known = findOperator(given, operators);
      if (known !== null) return { kind: "granted", operator: known };
      const now = clock.monotonic();
      wrongAt = wrongAt.filter((at) => now - at < WRONG_TOKENS_WINDOW_MS);
      const [oldest] = wrongAt;
      if (oldest !== undefined && wrongAt.length >= WRONG_TOKENS_MAX) {
        return { kind: "throttled", retryAfterMs: oldest + WRONG_TOKENS_WINDOW_MS - now };
      }
      // It may be right by a file that has changed since it was looked at.
      for (const { token } of operators) token.refresh();
      const renewed = findOperator(given, operators);
      if (renewed !== null) return { kind: "granted", operator: renewed };
      wrongAt = [...wrongAt, now];
      return { kind: "wrong" };
    },
  };
}

/** Compares with every token, so that the time does not tell which one was nearly right. Null: it is no operator's. */
function findOperator(given: string, operators: readonly Operator[]): string | null {
  const [found] = operators.filter(({ token }) => tokensEqual(given, token.value()));
  return found?.name ?? null;
}

/** In a time that says nothing of where they differ, nor of how long the right one is. */
const tokensEqual = (given: string, right: string): boolean => timingSafeEqual(digest(given), digest(right));

// A header loses the blanks at its ends: those of the file are no part of the token either.
const digest = (token: string): Buffer => createHash("sha256").update(token.trim()).digest();
