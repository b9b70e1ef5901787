import { createHash, timingSafeEqual } from "node:crypto";
import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Clock, Secret } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";

/**
 * What a bearer is. `missing`: no token was given; `wrong`: another one was; `throttled`: another one, after too many
 * others.
 */
export type Admission =
  | { readonly kind: "granted" | "missing" | "wrong" }
  | { readonly kind: "throttled"; readonly retryAfterMs: DurationMs };

/** Tells who has the admin token from who has not. */
export interface Gate {
  /** `authorization`: the header as it came. */
  judge(authorization: string | undefined, token: Secret): Admission;
}

/** Wrong tokens that are looked at in a minute. The right one is let in after any number of them. */
const WRONG_MAX = 10;
const WRONG_WINDOW_MS: DurationMs = MINUTE_MS;

/** A gate at which nobody was yet. */
export function createGate(clock: Pick<Clock, "monotonic">): Gate {
  let wrongAt: readonly MonotonicMs[] = [];
  return {
    judge(authorization, token) {
      const given = /^bearer +(.+)$/i.exec(authorization ?? "")?.[1];
      if (given === undefined) return { kind: "missing" };
      if (isSame(given, token.value())) return { kind: "granted" };
      const now = clock.monotonic();
      wrongAt = wrongAt.filter((at) => now - at < WRONG_WINDOW_MS);
      const [oldest] = wrongAt;
      if (oldest !== undefined && wrongAt.length >= WRONG_MAX) {
        return { kind: "throttled", retryAfterMs: oldest + WRONG_WINDOW_MS - now };
      }
      // It may be right by a file that has changed since it was looked at.
      token.refresh();
      if (isSame(given, token.value())) return { kind: "granted" };
      wrongAt = [...wrongAt, now];
      return { kind: "wrong" };
    },
  };
}

/** In a time that says nothing of where they differ, nor of how long the right one is. */
const isSame = (given: string, right: string): boolean => timingSafeEqual(digest(given), digest(right));

// A header loses the blanks at its ends: those of the file are no part of the token either.
const digest = (token: string): Buffer => createHash("sha256").update(token.trim()).digest();
