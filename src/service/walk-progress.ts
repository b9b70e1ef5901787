import { isHopeless, isRefusal, type ServiceError } from "./errors.ts";
import type { Walk, WalkReport } from "./pages.ts";

/** Pages of one walk: ten million sessions are not more at 500 a page. */
const PAGES_MAX = 20_000;
/** Pages in a row that repeat others after which a walk ends: the total is wrong, or the service ignores `page`. */
const BARREN_PAGES_MAX = 3;
/** A page repeats others if it has fewer new records than this share: some join while a list is walked. */
const BARREN_SHARE = 0.05;
/** Pages that are read again where the list shifted, as a share of the walk's pages, and at least. */
const REREADS_SHARE = 0.1;
const REREADS_MIN = 2;
/** Walks in a row that must agree on the difference between total and records before it is accepted. */
const CONSTANT_WALKS = 3;
/** After so many walks in a row that missed a page, what was learned of the first page is doubted. */
const SHORT_WALKS_MAX = 3;
/** Pages in a row that may fail before the rest is not asked for, and all in all as a share of those asked for. */
const FAILURES_IN_A_ROW_MAX = 5;
const FAILURES_SHARE_MAX = 0.25;

/** A page as it was fetched, or why it was not. */
export type Fetched = Awaited<ReturnType<Walk["fetch"]>>;

/** What a walk has seen so far: whether there is more to read, where the list shifted, and what the next walk should know. */
export class WalkProgress {
  readonly #walk: Walk;
  readonly #failures: ServiceError[] = [];
  #failedInARow = 0;
  /** The 4xx at which the pages ended: past the end of the list, or past the last record that the service shows. */
  #refusal: ServiceError | null = null;
  /** By page number the total that its answer stated. */
  readonly #totals = new Map<number, number>();
  #next: number;
  #total = 0;
  #received = 0;
  #seen = 0;
  #pages = 0;
  /** Pages that were asked for and are answered, or have failed. */
  #settled = 1;
  /** The longest page so far: a short one says nothing of how many a full one holds. */
  #size = 1;
  /** Number and length of the last page that brought a new record. */
  #last = { page: 0, length: 0 };
  #barren = 0;
  #end: "open" | WalkReport["end"] = "open";

  constructor(walk: Walk) {
    this.#walk = walk;
    this.#next = walk.habits.first + 1;
  }

  /** Takes in a page; returns how many of its records are new. */
  take(number: number, fetched: Fetched): number {
    if (number > this.#walk.habits.first) this.#settled++;
    if (!fetched.ok) {
      this.#fail(number, fetched.error);
      return 0;
    }
    const { page, at } = fetched.value;
    this.#pages++;
    this.#failedInARow = 0;
    this.#total = page.total;
    this.#totals.set(number, page.total);
    this.#received += page.records.length;
    this.#size = Math.max(this.#size, page.records.length);
    const fresh = this.#walk.fold(page.records, at);
    this.#seen += fresh;
    const isBarren = fresh < page.records.length * BARREN_SHARE || page.records.length === 0;
    this.#barren = isBarren ? this.#barren + 1 : 0;
    if (!isBarren && number >= this.#last.page) this.#last = { page: number, length: page.records.length };
    if (!isBarren && number > this.#walk.habits.first) this.#walk.habits.ignoresPage = false;
    const isPastEnd = page.records.length === 0 && (number - this.#walk.habits.first) * this.#size >= this.#planned();
    if (this.#end === "open" && (isPastEnd || this.#barren >= BARREN_PAGES_MAX)) this.#end = "reached";
    return fresh;
  }

  #fail(number: number, error: ServiceError): void {
    // Some services answer a page past the end with a 4xx, and some every page past some record.
    if (isRefusal(error) && number > this.#last.page) {
      this.#refusal ??= error;
      if (this.#end === "open") this.#end = "reached";
      return;
    }
    this.#failures.push(error);
    this.#failedInARow++;
    if (!this.isWorthwhile() && this.#end === "open") this.#end = "cut";
  }

  /** Takes the number of the next page to read. */
  takeNext(): number {
    return this.#next++;
  }

  hasMore(): boolean {
    const asked = this.#next - this.#walk.habits.first;
    if (asked >= PAGES_MAX && this.#end === "open") this.#end = "cut";
    if (this.#end !== "open") return false;
    // One page more shows whether the service still ignores the number.
    if (this.#walk.habits.ignoresPage) return asked < 2;
    if (asked * this.#size < this.#planned()) return true;
    // Where pages were shorter than others, the rest is on further ones.
    const isShort = this.#planned() - this.#seen > this.#size * BARREN_SHARE;
    if (this.#settled === asked && this.#failures.length === 0 && isShort) return true;
    // By its total the list ends here. Only a page that is not full proves that it does.
    const { page, length } = this.#last;
    const { singlePageMax, provenTotal } = this.#walk.habits;
    if ((asked === 1 && length <= singlePageMax) || this.#total === provenTotal) return false;
    return page === this.#next - 1 && length >= this.#size;
  }

  /** Records to be expected: the total less the difference that it always has. */
  #planned(): number {
    const accepted = this.#accepted();
    // A total that is wrong by a large number is never exact: half a page is no reason for another one.
    return this.#total - accepted - (Math.abs(accepted) > this.#size / 2 ? this.#size / 2 : 0);
  }

  /** Whether another page may fare better than those that failed. */
  isWorthwhile(): boolean {
    const failuresMax = Math.max(FAILURES_IN_A_ROW_MAX, Math.floor(this.#settled * FAILURES_SHARE_MAX));
    return (
      this.#failedInARow < FAILURES_IN_A_ROW_MAX &&
      this.#failures.length <= failuresMax &&
      !this.#failures.some(isHopeless)
    );
  }

  /** Records that the list counts and that were not seen, beyond the difference that it always shows. */
  missing(): number {
    return this.#total - this.#seen - this.#accepted();
  }

  /** The difference that the list always shows. A small one that varies is that of a list in motion. */
  #accepted(): number {
    const { records, same, similar } = this.#walk.habits.difference;
    const isLarge = Math.abs(records) > this.#size / 2;
    return same >= CONSTANT_WALKS || (isLarge && similar >= CONSTANT_WALKS) ? records : 0;
  }

  /** Whether the records that were not seen fill a page: a walk of a service that counts from 0 may have begun on its second. */
  missesAPage(): boolean {
    return this.#fillAPage(this.#total - this.#seen);
  }

  /** Whether about a page of the records that came had come before: the service may ignore the page number. */
  isRepeating(): boolean {
    return this.#received - this.#seen >= this.#size / 2;
  }

  #fillAPage(missed: number): boolean {
    return this.#failures.length === 0 && missed > 0 && missed >= Math.min(this.#size, this.#total) / 2;
  }

  /**
   * Pages to read again because a record left while the list was walked: the total fell from this page to the next, so the
   * first record of the next page may have slid to the end of this one, unseen. Empty where the list shifts all over.
   */
  gaps(): readonly number[] {
    if (!this.#canRepair()) return [];
    const gaps = [...this.#totals.keys()].filter(
      (page) => (this.#totals.get(page + 1) ?? Number.POSITIVE_INFINITY) < this.#totals.get(page)!,
    );
    return gaps.length <= this.#rereadsMax() ? gaps : [];
  }

  /** Pages to read again because records joined at the head: they pushed as many others onto a later page, seen twice. */
  head(): readonly number[] {
    const { first } = this.#walk.habits;
    if (!this.#canRepair() || this.missing() <= 0) return [];
    const joined = Math.max(this.#received - this.#seen, this.#total - (this.#totals.get(first) ?? this.#total));
    const length = Math.min(Math.ceil(joined / this.#size), this.#rereadsMax());
    return Array.from({ length }, (_, index) => first + index);
  }

  #canRepair(): boolean {
    const isWhole = this.#end === "open" || this.#end === "reached";
    return isWhole && this.#failures.length === 0 && this.#refusal === null && this.#barren < BARREN_PAGES_MAX;
  }

  #rereadsMax(): number {
    return Math.max(REREADS_MIN, Math.floor(this.#totals.size * REREADS_SHARE));
  }

  /** Gives the walk up before the end of the list. */
  cut(): void {
    this.#end = "cut";
  }

  /** Ends the walk: keeps for the next one what it showed. `echo`: the page size that the service says is in force. */
  close(echo: number | null): WalkReport {
    const difference = this.#accepted();
    this.#learn(echo);
    const isRefused = this.#end !== "cut" && this.#refusal !== null && this.#total - this.#seen >= this.#size / 2;
    const isWhole = this.#failures.length === 0 && this.#end !== "cut" && !isRefused;
    return {
      end: isRefused ? "refused" : this.#end === "open" ? "reached" : this.#end,
      total: this.#total,
      seen: this.#seen,
      isExact: isWhole && (this.#total === this.#seen || this.#walk.habits.difference.same >= CONSTANT_WALKS),
      difference,
      pages: this.#pages,
      error: this.#failures[0] ?? (isRefused ? this.#refusal : null),
    };
  }

  #learn(echo: number | null): void {
    const { habits } = this.#walk;
    const isSinglePage = this.#last.page <= habits.first;
    if (this.#end === "reached" && this.#total === this.#seen) habits.provenTotal = this.#total;
    habits.size = isSinglePage ? Math.max(this.#size, Math.min(echo ?? this.#size, habits.limit)) : this.#size;
    habits.shortWalks = this.#fillAPage(this.missing()) ? habits.shortWalks + 1 : 0;
    if (habits.shortWalks >= SHORT_WALKS_MAX) {
      habits.shortWalks = 0;
      habits.firstKnown = false;
      habits.first = 1;
    }
    if (this.#end === "cut" || this.#failures.length > 0) return;
    if (this.#seen > 0 && this.#seen >= this.#total) habits.firstKnown = true;
    if (isSinglePage && this.#barren >= BARREN_PAGES_MAX) habits.ignoresPage = true;
    if (isSinglePage && this.#last.length < habits.limit) {
      habits.singlePageMax = Math.max(habits.singlePageMax, this.#last.length);
    }
    const { difference: before } = habits;
    const records = this.#total - this.#seen;
    // Compared with the first of its kind: a difference that creeps is none that is always there.
    const isSimilar = Math.abs(records - before.first) <= this.#size / 2;
    habits.difference = {
      records,
      first: isSimilar ? before.first : records,
      same: records === before.records ? before.same + 1 : 1,
      similar: isSimilar ? before.similar + 1 : 1,
    };
  }
}
