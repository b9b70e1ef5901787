/** Usages that only a detail shows, as the columns of a fleet name them. */
export const USAGES = ["cpuUsage", "memoryUsage", "diskUsage"] as const;
export type Usage = (typeof USAGES)[number];

/** A line that a policy draws through a usage: where one of its comparisons changes its mind. */
export interface Threshold {
  readonly usage: Usage;
  /** 0 to 1, as usages are. */
  readonly value: number;
  /** On which side of the line the policy sees trouble. */
  readonly side: "above" | "below";
}
