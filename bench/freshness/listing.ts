import type { EpochMs } from "../../src/model/time.ts";
import { type Cell, pageSizeOf } from "./cell.ts";
import type { Script } from "./script.ts";

/** The list of a cell's nodes over time. The times of successive calls must not decrease. */
export interface Listing {
  /** Returns the number of pages. */
  pages(at: EpochMs): number;
  /** Returns the page, from 0, that contains a node, or -1 if none does. */
  pageOf(index: number, at: EpochMs): number;
  /** Returns the node after `index` in round-robin order, which is the order of joining. */
  next(index: number, at: EpochMs): number;
}

/** Creates the list of a cell, which follows the script's joins and leaves. */
export function createListing(cell: Cell, { listed, membershipChanges }: Script): Listing {
  const size = pageSizeOf(cell);
  if (membershipChanges.length === 0) {
    return {
      pages: () => Math.ceil(cell.nodes / size),
      pageOf: (index) => Math.floor(index / size),
      next: (index) => (index + 1) % cell.nodes,
    };
  }
  const positions = [...listed];
  const isMember = Array.from({ length: cell.nodes }, () => true);
  let applied = 0;

  function advanceTo(at: EpochMs): void {
    for (
      let move = membershipChanges[applied];
      move !== undefined && move.at <= at;
      move = membershipChanges[++applied]
    ) {
      isMember[move.index] = move.joins;
      // The list is sorted by age, newest first.
      if (move.joins) positions.unshift(move.index);
      else positions.splice(positions.indexOf(move.index), 1);
    }
  }

  return {
    pages(at) {
      advanceTo(at);
      return Math.ceil(positions.length / size);
    },
    pageOf(index, at) {
      advanceTo(at);
      return Math.floor(positions.indexOf(index) / size);
    },
    next(index, at) {
      advanceTo(at);
      let next = index;
      do next = (next + 1) % isMember.length;
      while (!isMember[next]);
      return next;
    },
  };
}
