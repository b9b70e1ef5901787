import { byName } from "../base/by-name.ts";
import type { DurationMs } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import type { Ledger } from "./ledger.ts";
import { CATEGORIES, type Category, type Limits } from "./limits.ts";
import { ROUTES, type Route } from "./route-rejections.ts";
import { endHolds, HOLD_MS_MAX, heldUntil, holdCategory } from "./too-many-requests.ts";

/** Key of the fact with the {@link StoredHolds}. Absent or `null` if no route is held. */
export const HOLDS_FACT = "ratelimit.holds";

/** The holds of earlier 429s and 5xx, for the next process. */
export interface StoredHolds {
  /** When they were stored, by the wall clock. */
  readonly at: EpochMs;
  /** How long each route was then held, or 0. A route that another version stored may be absent. */
  readonly leftMs: Readonly<Partial<Record<Category, Readonly<Partial<Record<Route, DurationMs>>>>>>;
  /** The limits that applied. */
  readonly limits: Limits;
}

/** Returns when the routes that are held at `now` are free, in a fixed order. */
export const holdEnds = (ledger: Ledger, now: MonotonicMs): readonly MonotonicMs[] =>
  CATEGORIES.flatMap((category) => ROUTES.map((route) => heldUntil(ledger, category, route))).filter((at) => at > now);

/** Returns the holds of a ledger. `at` is the wall clock at `now`. */
export const storedHoldsOf = (ledger: Ledger, now: MonotonicMs, at: EpochMs): StoredHolds => ({
  at,
  leftMs: byName(CATEGORIES, (category) =>
    byName(ROUTES, (route) => Math.max(0, heldUntil(ledger, category, route) - now)),
  ),
  limits: ledger.limits,
});

/**
 * Continues the holds of an earlier process in a new ledger, except those that can't be read. If the wall clock, `at`, was
 * set back since, they count from now. If the limits have changed, they end within a window, as after a reload.
 */
export function continueHolds(ledger: Ledger, stored: Partial<StoredHolds>, now: MonotonicMs, at: EpochMs): void {
  const storedAt = now - Math.max(0, at - (stored.at ?? 0));
  for (const category of CATEGORIES) {
    const { routes } = ledger.categories[category];
    for (const route of ROUTES) {
      const until = storedAt + Math.min(HOLD_MS_MAX, stored.leftMs?.[category]?.[route] ?? 0);
      // A hold until NaN would never end.
      if (until > now) routes[route].heldUntil = until;
    }
    holdCategory(ledger, category, Math.min(...Object.values(routes).map(({ heldUntil: until }) => until)));
  }
  if (JSON.stringify(stored.limits) !== JSON.stringify(ledger.limits)) endHolds(ledger, now);
}
