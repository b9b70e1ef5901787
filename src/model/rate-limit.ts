/** The service's rate limit categories (spec, section 8.2). */
export const CATEGORIES = ["node_management", "session_monitoring"] as const;
export type Category = (typeof CATEGORIES)[number];

/** What a rate limit is for: a category, or the plan over all of them. */
export const LIMIT_SCOPES = [...CATEGORIES, "plan"] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/** The limits that can slow down polling: the plan's month is one of them. */
export const PLAN_BOUNDS = [...LIMIT_SCOPES, "month"] as const;
export type Bound = (typeof PLAN_BOUNDS)[number];
