import type { Share } from "../../base/percent.ts";
import { hash, type Uint32 } from "../hash.ts";

/** A list of which some positions are missing, and the missing ones are not known to be: what is left closes ranks. */
export interface RecordFilter {
  /** Whether the record at that position of the whole list is left. */
  has(position: number): boolean;
  /** How many of a list of `total` are left. */
  count(total: number): number;
  /** Positions in the whole list, in order, of up to `limit` that are left, without the first `offset` of them. */
  positions(offset: number, limit: number, total: number): number[];
}

/** Positions repeat their fate after so many, so that a page of a long list is found without walking there. */
const PATTERN_LENGTH = 1_000;

/** A sieve that holds back `share` of the positions, spread by chance. */
export function createRecordFilter(seed: Uint32, share: Share): RecordFilter {
  const byChance = Array.from({ length: PATTERN_LENGTH }, (_, position) => position).sort(
    (one, other) => hash(seed, one) - hash(seed, other),
  );
  const left = byChance.slice(Math.round(share * PATTERN_LENGTH)).sort((one, other) => one - other);
  const count = (total: number): number => {
    const rest = total % PATTERN_LENGTH;
    return Math.floor(total / PATTERN_LENGTH) * left.length + left.filter((position) => position < rest).length;
  };
  return {
    has: (position) => left.includes(position % PATTERN_LENGTH),
    count,
    positions(offset, limit, total) {
      const length = Math.max(0, Math.min(limit, count(total) - offset));
      return Array.from({ length }, (_, index) => {
        const rank = offset + index;
        return Math.floor(rank / left.length) * PATTERN_LENGTH + left[rank % left.length]!;
      });
    },
  };
}

/** The sieve that lets everything pass. */
export const PASS_ALL_FILTER: RecordFilter = {
  has: () => true,
  count: (total) => total,
  positions: (offset, limit, total) =>
    Array.from({ length: Math.max(0, Math.min(limit, total - offset)) }, (_, index) => offset + index),
};
