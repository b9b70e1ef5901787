import type { MonotonicMs } from "../model/time.ts";
import { limitScopeOf } from "./external-usage/external-usage.ts";
import type { CategoryState, Ledger, Permit } from "./ledger.ts";
import { CATEGORIES, type Category } from "./limits.ts";
import { isRejectedAlone, routeOf } from "./route-rejections.ts";
import type { LimitReading } from "./stated-limit.ts";

/**
 * Returns which calls a 429 may concern: those of its route, those of its category, or all. `isExplained` is the result of
 * {@link headersExplainRejection}. Call it once the route has counted the 429, and before the category has.
 */
export function rejectionScopeOf(
  ledger: Ledger,
  { category, lane }: Permit,
  reading: LimitReading | null,
  isExplained: boolean,
): "route" | "category" | "all" {
  const state = ledger.categories[category];
  const route = state.routes[routeOf(lane)];
  const routes = Object.values(state.routes);
  const otherRoutes = routes.filter((other) => other !== route);
  if (!isExplained && isRejectedAlone([route], otherRoutes)) return "route";
  const haveOthersSucceeded = state.rejections > 0 && othersAnsweredAt(ledger, category) > state.rejectedAt;
  const routesOfOthers = otherCategories(ledger, category).flatMap((other) => Object.values(other.routes));
  const concernsCategory =
    isCategoryLimit(ledger, category, reading) || haveOthersSucceeded || isRejectedAlone(routes, routesOfOthers);
  return concernsCategory ? "category" : "all";
}

/** Returns the states of the categories other than `category`. */
export const otherCategories = ({ categories }: Ledger, category: Category): readonly CategoryState[] =>
  CATEGORIES.filter((other) => other !== category).map((other) => categories[other]);

/** Returns when the last answered call of another category was sent. */
export const othersAnsweredAt = (ledger: Ledger, category: Category): MonotonicMs =>
  Math.max(...otherCategories(ledger, category).map(({ answeredAt }) => answeredAt));

/**
 * Returns whether headers say that a 429 concerns only its category. Without headers it may concern the whole account.
 */
const isCategoryLimit = (ledger: Ledger, category: Category, reading: LimitReading | null): boolean =>
  reading !== null &&
  reading.limit === ledger.limits.categories[category].requests &&
  limitScopeOf(ledger, category, reading.limit) === category;

/**
 * Returns whether headers explain a 429, because nothing remains of a limit that is configured or was stated before.
 */
export function headersExplainRejection(
  { limits, categories }: Ledger,
  category: Category,
  reading: LimitReading | null,
): boolean {
  if (reading === null || reading.remaining > 0) return false;
  const { requestsPerMinute, concurrentRequests, callsPerMonth } = limits.plan;
  const known = [limits.categories[category].requests, requestsPerMinute, concurrentRequests, callsPerMonth];
  return [...known, categories[category].stated.lastStatement?.limit].includes(reading.limit);
}
