/** The kinds of failure domains that nodes are in. */
export const FAILURE_DOMAINS = ["region", "country"] as const;
export type FailureDomain = (typeof FAILURE_DOMAINS)[number];

/** A number of nodes for each kind of failure domain; null: no limit. */
export type PerFailureDomain = Readonly<Record<FailureDomain, number | null>>;
