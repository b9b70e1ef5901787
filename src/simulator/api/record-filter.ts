import type { Share } from "../../base/percent.ts";
import { hash, type Uint32 } from "../hash.ts";

/** A filter that removes positions from a list. The remaining ones are numbered without gaps. */
export interface RecordFilter {
  /** Returns whether the position of the unfiltered list remains. */
  has(position: number): boolean;
  /** Returns how many positions of a list of `total` remain. */
  count(total: number): number;
  /** Returns up to `limit` remaining positions of the unfiltered list in order, after skipping `offset` of them. */
  positions(offset: number, limit: number, total: number): number[];
}

/** The pattern of removed positions repeats, so that a page of a long list is found without iterating up to it. */
const PATTERN_LENGTH = 1_000;

/** Creates a filter that removes a random `share` of the positions. */
export function createRecordFilter(seed: Uint32, share: Share): RecordFilter {
  const shuffled = Array.from({ length: PATTERN_LENGTH }, (_, position) => position).sort(
    (one, other) => hash(seed, one) - hash(seed, other),
  );
  const remaining = shuffled.slice(Math.round(share * PATTERN_LENGTH)).sort((one, other) => one - other);
  const count = (total: number): number => {
    const rest = total % PATTERN_LENGTH;
    return (
      Math.floor(total / PATTERN_LENGTH) * remaining.length + remaining.filter((position) => position < rest).length
    );
  };
  return {
    has: (position) => remaining.includes(position % PATTERN_LENGTH),
    count,
    positions(offset, limit, total) {
      const length = Math.max(0, Math.min(limit, count(total) - offset));
      return Array.from({ length }, (_, index) => {
        const rank = offset + index;
        return Math.floor(rank / remaining.length) * PATTERN_LENGTH + remaining[rank % remaining.length]!;
      });
    },
  };
}

/** A filter that removes nothing. */
export const PASS_ALL_FILTER: RecordFilter = {
  has: () => true,
  count: (total) => total,
  positions: (offset, limit, total) =>
    Array.from({ length: Math.max(0, Math.min(limit, total - offset)) }, (_, index) => offset + index),
};
