import type { Share } from "../base/percent.ts";

/** What a walk of a list counted. */
export interface WalkCounts {
  /** Records that the list says it has. */
  readonly total: number;
  /** Distinct records that the walk has seen. */
  readonly seen: number;
}

/** Records that a walk did not show, less `explained` ones whose absence is explained; negative: it showed more than the total. */
export const missingRecords = ({ total, seen }: WalkCounts, explained = 0): number => total - seen - explained;

/** Records that a complete walk may miss: `share` of the larger of total and seen, and at least one if the share is above 0. */
export const allowedMissing = ({ total, seen }: WalkCounts, share: Share): number =>
  share === 0 ? 0 : Math.max(1, Math.floor(Math.max(total, seen) * share));

/** Share of the records that a walk showed, 0 to 1; 1 for an empty list. */
export function shownShare({ total, seen }: WalkCounts, missing: number): Share {
  const all = Math.max(total, seen + missing);
  return all === 0 ? 1 : Math.max(0, Math.min(1, 1 - missing / all));
}
