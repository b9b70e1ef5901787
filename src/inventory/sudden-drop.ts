import type { Share } from "../base/percent.ts";

/** A walk that shows less than this share of the records is doubted. */
const SHOWN_MIN: Share = 0.5;
/** Lists with fewer records may really lose half of them at once. */
const RECORDS_MIN = 20;
/** After this many doubted walks in a row the next one is believed, since the records may really be gone. */
const DOUBTED_WALKS_MAX = 10;

/**
 * Doubts walks that suddenly show far fewer records, because a service may show too few for some minutes, and count no
 * more than that.
 */
export class SuddenDropCheck {
  /** Records that the last believed walk showed. */
  #believed = 0;
  #doubtedWalks = 0;

  /**
   * Checks a walk that showed all records that the list counts. `stated` is their number according to another source,
   * read since the walk before, or null if there is none; a walk that it confirms is believed. Returns how many records
   * the walk misses, or 0 if it is believed.
   */
  missingRecords(seen: number, stated: number | null): number {
    const isDrop = this.#believed >= RECORDS_MIN && seen < this.#believed * SHOWN_MIN;
    const isConfirmed = stated !== null && seen >= stated * SHOWN_MIN;
    if (isDrop && !isConfirmed && this.#doubtedWalks < DOUBTED_WALKS_MAX) {
      this.#doubtedWalks++;
      return this.#believed - seen;
    }
    this.#believed = seen;
    this.#doubtedWalks = 0;
    return 0;
  }
}
