import type { EpochMs } from "../../src/model/time.ts";
import { type Cell, pageSizeOf } from "./cell.ts";
import type { Script } from "./script.ts";

/** The list of a cell's nodes over time. Instants of calls never go back. */
export interface Listing {
  /** Pages that the list has. */
  pages(at: EpochMs): number;
  /** The page, from 0, that shows the node; -1: none does. */
  pageOf(index: number, at: EpochMs): number;
  /** The next node to be read by those that take nodes in turn, in the order of joining. */
  next(index: number, at: EpochMs): number;
}

/** The list as it is at the start, and as joins and leaves change it. */
export function createListing(cell: Cell, { listed, moves }: Script): Listing {
  const size = pageSizeOf(cell);
  if (moves.length === 0) {
    return {
      pages: () => Math.ceil(cell.nodes / size),
      pageOf: (index) => Math.floor(index / size),
      next: (index) => (index + 1) % cell.nodes,
    };
  }
  const positions = [...listed];
  const isMember = Array.from({ length: cell.nodes }, () => true);
  let moved = 0;

  function passTo(at: EpochMs): void {
    for (let move = moves[moved]; move !== undefined && move.at <= at; move = moves[++moved]) {
      isMember[move.index] = move.joins;
      // The list is sorted by age, the newest first.
      if (move.joins) positions.unshift(move.index);
      else positions.splice(positions.indexOf(move.index), 1);
    }
  }

  return {
    pages(at) {
      passTo(at);
      return Math.ceil(positions.length / size);
    },
    pageOf(index, at) {
      passTo(at);
      return Math.floor(positions.indexOf(index) / size);
    },
    next(index, at) {
      passTo(at);
      let next = index;
      do next = (next + 1) % isMember.length;
      while (!isMember[next]);
      return next;
    },
  };
}
