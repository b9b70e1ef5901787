import { missingRecords } from "../../inventory/walk-completeness.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { type ApiError, isPermanent, isRequestRejected } from "../errors.ts";
import type { ListWalk, PageResult } from "./list-behavior.ts";

/** Maximum pages of one walk: ten million sessions at 500 per page. */
const PAGES_MAX = 20_000;
/** A walk ends after this many repeated pages in a row, since the total is wrong or the service ignores `page`. */
const REPEATED_PAGES_MAX = 3;
/** A page counts as repeated if less than this share of its records is new. A few are added while a list is walked. */
const NEW_RECORDS_SHARE = 0.05;
/** Maximum number of pages to read again because the list shifted, as a share of all pages but at least a minimum. */
const REREADS_SHARE = 0.1;
const REREADS_MIN = 2;
/** Walks in a row that must show the same difference between total and records before it is accepted. */
const CONSTANT_WALKS = 3;
/** After this many walks in a row that missed a page, the number of the first page is determined again. */
const SHORT_WALKS_MAX = 3;
/**
 * A walk is cut short after this many failed pages in a row, or if more pages than that, and more than this share of
 * the pages, failed.
 */
const FAILURES_IN_A_ROW_MAX = 5;
const FAILURES_SHARE_MAX = 0.25;

/** Result of a walk. */
export type WalkReport = ReturnType<WalkProgress["close"]>;

/**
 * Progress of one walk: whether there are more pages, where the list shifted, and what to remember for the next walk.
 */
export class WalkProgress {
  readonly #walk: ListWalk;
  readonly #failures: ApiError[] = [];
  #failedInARow = 0;
  /** The 4xx of a page after the end of the list, or after the last record that the service shows. */
  #rejection: ApiError | null = null;
  /** Total that each page stated, by page number. */
  readonly #totals = new Map<number, number>();
  #next: number;
  #total = 0;
  #received = 0;
  #seen = 0;
  #pages = 0;
  #observedFrom: MonotonicMs = Number.POSITIVE_INFINITY;
  /** Number of pages that were read or failed. */
  #settled = 1;
  /** Number of records of the longest page so far. */
  #pageSize = 1;
  /** Number and length of the last page that was not repeated. */
  #lastPage = { page: 0, length: 0 };
  #repeatedInARow = 0;
  #end: "open" | "reached" | "cut" = "open";

  constructor(walk: ListWalk) {
    this.#walk = walk;
    this.#next = walk.behavior.first + 1;
  }

  /** Records a page, or why it could not be read. */
  record(number: number, page: PageResult): void {
    if (number > this.#walk.behavior.first) this.#settled++;
    if (!page.ok) {
      this.#fail(number, page.error);
      return;
    }
    const { at, total, length, fresh } = page.value;
    this.#pages++;
    this.#observedFrom = Math.min(this.#observedFrom, at);
    this.#failedInARow = 0;
    // A page without records may state a total of 0, as a count in the query of the page does.
    if (length > 0 || total > 0) {
      this.#total = total;
      this.#totals.set(number, total);
    }
    this.#received += length;
    this.#pageSize = Math.max(this.#pageSize, length);
    this.#seen += fresh;
    const isRepeated = fresh < length * NEW_RECORDS_SHARE || length === 0;
    this.#repeatedInARow = isRepeated ? this.#repeatedInARow + 1 : 0;
    if (!isRepeated && number >= this.#lastPage.page) this.#lastPage = { page: number, length };
    if (!isRepeated && number > this.#walk.behavior.first) this.#walk.behavior.ignoresPage = false;
    const isPastEnd = length === 0 && (number - this.#walk.behavior.first) * this.#pageSize >= this.#expectedRecords();
    if (this.#end === "open" && (isPastEnd || this.#repeatedInARow >= REPEATED_PAGES_MAX)) this.#end = "reached";
  }

  #fail(number: number, error: ApiError): void {
    // Some services answer 4xx to pages after the end, some to all pages after a certain record.
    if (isRequestRejected(error) && number > this.#lastPage.page) {
      this.#rejection ??= error;
      if (this.#end === "open") this.#end = "reached";
      return;
    }
    this.#failures.push(error);
    this.#failedInARow++;
    if (!this.isWorthwhile() && this.#end === "open") this.#end = "cut";
  }

  /** Takes the number of the next page to read. */
  takeNextPage(): number {
    return this.#next++;
  }

  /** Whether to read another page. */
  hasMore(): boolean {
    const asked = this.#next - this.#walk.behavior.first;
    if (asked >= PAGES_MAX && this.#end === "open") this.#end = "cut";
    if (this.#end !== "open") return false;
    // A second page shows whether the service still ignores the page number.
    if (this.#walk.behavior.ignoresPage) return asked < 2;
    if (asked * this.#pageSize < this.#expectedRecords()) return true;
    // If some pages were shorter than others, the remaining records are on further ones.
    const isShort = this.#expectedRecords() - this.#seen > this.#pageSize * NEW_RECORDS_SHARE;
    if (this.#settled === asked && this.#failures.length === 0 && isShort) return true;
    // The list ends here according to its total. Only a page that is not full proves it.
    const { page, length } = this.#lastPage;
    const { singlePageMax, provenTotal } = this.#walk.behavior;
    if ((asked === 1 && length <= singlePageMax) || this.#total === provenTotal) return false;
    return page === this.#next - 1 && length >= this.#pageSize;
  }

  /** Number of records to expect: the total less the accepted difference. */
  #expectedRecords(): number {
    const accepted = this.#acceptedDifference();
    // A total with a large difference is never exact: half a page of records is not worth another call.
    return this.#total - accepted - (Math.abs(accepted) > this.#pageSize / 2 ? this.#pageSize / 2 : 0);
  }

  /** Whether another page may succeed although some failed. */
  isWorthwhile(): boolean {
    const failuresMax = Math.max(FAILURES_IN_A_ROW_MAX, Math.floor(this.#settled * FAILURES_SHARE_MAX));
    return (
      this.#failedInARow < FAILURES_IN_A_ROW_MAX &&
      this.#failures.length <= failuresMax &&
      !this.#failures.some(isPermanent)
    );
  }

  /** Number of records missing from the total, beyond the accepted difference. */
  missing(): number {
    return missingRecords({ total: this.#total, seen: this.#seen }, this.#acceptedDifference());
  }

  /**
   * The constant difference between total and records, or 0 if there is none, or if it is small and varies as the list
   * changes.
   */
  #acceptedDifference(): number {
    const { records, same, similar } = this.#walk.behavior.difference;
    const isLarge = Math.abs(records) > this.#pageSize / 2;
    return same >= CONSTANT_WALKS || (isLarge && similar >= CONSTANT_WALKS) ? records : 0;
  }

  /**
   * Whether about a page of records is missing or the list is empty, or its total is so wrong that it can't show this: if
   * the service counts pages from 0, the walk began on the second one.
   */
  mayMissAPage(): boolean {
    const total = this.#largestTotal();
    const isEmpty = total === 0 && this.#seen === 0;
    const isTotalWrong = this.#seen - total >= this.#pageSize / 2;
    return isEmpty || isTotalWrong || this.#fillsAPage(total - this.#seen);
  }

  /** Returns the largest total of the walk, since that of a page without records may count something else. */
  #largestTotal(): number {
    return this.#totals.values().reduce((largest, total) => Math.max(largest, total), this.#total);
  }

  /** Whether about a page of records came twice: the service may ignore the page number. */
  isRepeating(): boolean {
    return this.#received - this.#seen >= this.#pageSize / 2;
  }

  #fillsAPage(records: number): boolean {
    return this.#failures.length === 0 && records > 0 && records >= Math.min(this.#pageSize, this.#total) / 2;
  }

  /**
   * Pages to read again because a record was removed during the walk: if the total fell from one page to the next, the
   * first record of the next page may have moved to the end of the one before. Empty if too many pages shifted.
   */
  gaps(): readonly number[] {
    if (!this.#canRepair()) return [];
    const gaps = [...this.#totals.keys()].filter(
      (page) => (this.#totals.get(page + 1) ?? Number.POSITIVE_INFINITY) < this.#totals.get(page)!,
    );
    return gaps.length <= this.#rereadsMax() ? gaps : [];
  }

  /** Pages to read again because records were added at the start of the list, which moved others to later pages. */
  head(): readonly number[] {
    const { first } = this.#walk.behavior;
    if (!this.#canRepair() || this.missing() <= 0) return [];
    const added = Math.max(this.#received - this.#seen, this.#total - (this.#totals.get(first) ?? this.#total));
    const length = Math.min(Math.ceil(added / this.#pageSize), this.#rereadsMax());
    return Array.from({ length }, (_, index) => first + index);
  }

  #canRepair(): boolean {
    const isComplete = this.#end === "open" || this.#end === "reached";
    return (
      isComplete && this.#failures.length === 0 && this.#rejection === null && this.#repeatedInARow < REPEATED_PAGES_MAX
    );
  }

  #rereadsMax(): number {
    return Math.max(REREADS_MIN, Math.floor(this.#totals.size * REREADS_SHARE));
  }

  /** Ends the walk before the end of the list. */
  cut(): void {
    this.#end = "cut";
  }

  /** Ends the walk and remembers its results for the next one. `echo` is the page size that the service states. */
  close(echo: number | null) {
    const difference = this.#acceptedDifference();
    this.#learn(echo);
    const isRejected =
      this.#end !== "cut" && this.#rejection !== null && this.#total - this.#seen >= this.#pageSize / 2;
    const isComplete = this.#failures.length === 0 && this.#end !== "cut" && !isRejected;
    return {
      /**
       * `reached`: the walk reached the end of the list. `refused`: the service answered 4xx to all pages after a certain
       * record. `cut`: the walk was stopped before the end.
       */
      end: isRejected ? "refused" : this.#end === "open" ? "reached" : this.#end,
      /** Number of records in the list, as the last response stated it. */
      total: this.#total,
      /** Number of distinct records. */
      seen: this.#seen,
      /** Whether no record is missing: no page failed, and the total matches the records or has its constant difference. */
      isExact: isComplete && (this.#total === this.#seen || this.#walk.behavior.difference.same >= CONSTANT_WALKS),
      /** The constant difference between total and records in earlier walks, or 0 if there is none. */
      difference,
      /** Number of pages read, including those read twice. */
      pages: this.#pages,
      /** When the first of them was observed. */
      observedFrom: this.#observedFrom,
      /** The first failure of a page, or null if there is none. */
      error: this.#failures[0] ?? (isRejected ? this.#rejection : null),
    };
  }

  #learn(echo: number | null): void {
    const { behavior } = this.#walk;
    const isSinglePage = this.#lastPage.page <= behavior.first;
    if (this.#end === "reached" && this.#total === this.#seen) behavior.provenTotal = this.#total;
    behavior.pageSize = isSinglePage
      ? Math.max(this.#pageSize, Math.min(echo ?? this.#pageSize, behavior.limit))
      : this.#pageSize;
    const isShort = this.#fillsAPage(this.missing());
    behavior.shortWalks = isShort ? behavior.shortWalks + 1 : 0;
    if (behavior.shortWalks >= SHORT_WALKS_MAX) {
      behavior.shortWalks = 0;
      behavior.firstKnown = false;
    }
    if (this.#end === "cut" || this.#failures.length > 0) return;
    // A service that counts from 1 may have no records on page 0.
    if (this.#seen === 0 && behavior.first === 0) behavior.firstKnown = false;
    if (!isShort && this.#seen > 0 && this.#seen >= this.#largestTotal()) behavior.firstKnown = true;
    if (isSinglePage && this.#repeatedInARow >= REPEATED_PAGES_MAX) behavior.ignoresPage = true;
    if (isSinglePage && this.#lastPage.length < behavior.limit) {
      behavior.singlePageMax = Math.max(behavior.singlePageMax, this.#lastPage.length);
    }
    const { difference: previous } = behavior;
    const records = this.#total - this.#seen;
    // Compared with the first similar one: a difference that slowly grows is not constant.
    const isSimilar = Math.abs(records - previous.first) <= this.#pageSize / 2;
    behavior.difference = {
      records,
      first: isSimilar ? previous.first : records,
      same: records === previous.records ? previous.same + 1 : 1,
      similar: isSimilar ? previous.similar + 1 : 1,
    };
  }
}
