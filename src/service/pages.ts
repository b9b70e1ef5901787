import { ok, type Result } from "../base/result.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { PageQuery } from "./endpoints.ts";
import type { ServiceError } from "./errors.ts";
import type { RawPage } from "./wire.ts";

/** What is known of a list, kept from walk to walk. The spec shows neither the largest page nor the first page number. */
export interface PageHabits {
  /** Page size that the configuration asks for. */
  readonly wish: number;
  /** Page size that is asked for: the wish, or {@link PAGE_LIMIT_FALLBACK} where the service refused that. */
  limit: number;
  /** Walks so far: after every {@link WALKS_TO_DOUBT} the page size and the last page are learned anew. */
  walks: number;
  /** Records that a full page holds; null before the first walk. */
  size: number | null;
  /** Of a list on one page, the longest that was followed by nothing new: a first page no longer than it is the last. */
  singlePageMax: number;
  /** Number of the first page; taken for 1 until a walk that misses a page finds a page 0. */
  first: 0 | 1;
  /** Whether {@link first} has been proved. */
  firstKnown: boolean;
  /** Walks in a row that missed about a page although no page failed. */
  shortWalks: number;
  /** The total less the records shown, where the last {@link CONSTANT_WALKS} walks agree on it; negative: the total is too low. */
  difference: number;
  /** The difference of the last walk, and how many walks in a row had it. */
  latest: { readonly difference: number; readonly walks: number };
}

/** Habits of a list that was never walked. */
export const newPageHabits = (wish: number): PageHabits => ({
  wish,
  limit: wish,
  walks: 0,
  size: null,
  singlePageMax: 0,
  first: 1,
  firstKnown: false,
  shortWalks: 0,
  difference: 0,
  latest: { difference: 0, walks: 0 },
});

/** One list to walk. */
export interface Walk {
  fetch(query: PageQuery, signal: AbortSignal): Promise<Result<{ page: RawPage; at: MonotonicMs }, ServiceError>>;
  /** Takes in the records of one page; returns how many of them this walk had not seen before. */
  fold(records: readonly unknown[], at: MonotonicMs): number;
  readonly habits: PageHabits;
}

/** How a walk went. */
export interface WalkReport {
  /**
   * `reached`: the walk came to the end of the list. `refused`: the service refused every page past some record, with a
   * 4xx. `cut`: the walk was given up before the end.
   */
  readonly end: "reached" | "refused" | "cut";
  /** Records that the list counts, by the answer that came last. */
  readonly total: number;
  /** Distinct records seen. */
  readonly seen: number;
  /** Whether every record is accounted for: no page failed, and the total differs from what was seen by as much as always. */
  readonly isExact: boolean;
  /** The constant difference between the total and what is seen; 0: none is known. */
  readonly difference: number;
  /** Pages read, repeated ones included. */
  readonly pages: number;
  /** The first failure of a page; null where all came. */
  readonly error: ServiceError | null;
}

/** Asked for where a large limit is refused: a page size that every paginated service takes. */
export const PAGE_LIMIT_FALLBACK = 100;
/** Pages under way at once: enough to hide latency; the budget, not the client, is the limit. */
const PAGES_IN_FLIGHT_MAX = 3;
/** Pages of one walk: ten million sessions are not more at 500 a page. */
const PAGES_MAX = 20_000;
/** Pages in a row without a new record after which a walk ends: the total is wrong, or the service ignores `page`. */
const BARREN_PAGES_MAX = 3;
/** Pages that are read again where the list shifted, as a share of the walk's pages, and at least. */
const REREADS_SHARE = 0.1;
const REREADS_MIN = 2;
/** What was learned is tried again after so many walks: the refusal of a page size may have been a passing fault. */
const WALKS_TO_DOUBT = 100;
/** After so many walks in a row that missed a page, what was learned of the first page is doubted. */
const SHORT_WALKS_MAX = 3;
/** Walks in a row that must agree on the difference between total and records before it is taken for constant. */
const CONSTANT_WALKS = 3;
/** Pages of one walk that may fail before the rest is not asked for. */
const FAILURES_MAX = 3;

const HOPELESS: ReadonlySet<ServiceError["kind"]> = new Set([
  "rate_limited",
  "budget",
  "unauthorized",
  "forbidden",
  "redirected",
  "aborted",
]);

/** Whether another call of the same kind would fare no better after this error, or cost calls that are not there. */
export const isHopeless = ({ kind }: ServiceError): boolean => HOPELESS.has(kind);

/** Walks a list to its end (spec, section 2.5). Fails only where the first page fails. */
export async function walkPages(walk: Walk, signal: AbortSignal): Promise<Result<WalkReport, ServiceError>> {
  const { habits } = walk;
  const first = await fetchFirst(walk, signal);
  if (!first.ok) return first;
  const progress = new WalkProgress(walk);
  progress.take(habits.first, first);
  const read = async (page: number) => progress.take(page, await walk.fetch({ page, limit: habits.limit }, signal));
  const readOn = async () => {
    for (let page = progress.nextPage(); page !== null && !signal.aborted; page = progress.nextPage()) {
      await read(page);
    }
  };
  // What a page brings may show that there are more, after the other readers found nothing left to ask for.
  while (progress.hasMore() && !signal.aborted) {
    await Promise.all(Array.from({ length: PAGES_IN_FLIGHT_MAX }, readOn));
  }
  if (progress.missesAPage() && !habits.firstKnown && !signal.aborted) await lookForPageZero(walk, progress, signal);
  for (const page of progress.gaps()) if (progress.isWorthwhile() && !signal.aborted) await read(page);
  for (const page of progress.head()) {
    if (progress.missing() > 0 && progress.isWorthwhile() && !signal.aborted) await read(page);
  }
  progress.learn(first.value.page.limit);
  return ok(progress.report());
}

type Fetched = Awaited<ReturnType<Walk["fetch"]>>;

/** What a walk has seen so far. */
class WalkProgress {
  readonly #walk: Walk;
  readonly #failures: ServiceError[] = [];
  /** By page number the total that its answer stated. */
  readonly #totals = new Map<number, number>();
  #next: number;
  #total = 0;
  #received = 0;
  #seen = 0;
  #pages = 0;
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
    if (!fetched.ok) {
      this.#fail(number, fetched.error);
      return 0;
    }
    const { page, at } = fetched.value;
    this.#pages++;
    this.#total = page.total;
    this.#totals.set(number, page.total);
    this.#received += page.records.length;
    this.#size = Math.max(this.#size, page.records.length);
    const fresh = this.#walk.fold(page.records, at);
    this.#seen += fresh;
    if (fresh > 0 && number >= this.#last.page) this.#last = { page: number, length: page.records.length };
    this.#barren = fresh === 0 ? this.#barren + 1 : 0;
    if (this.#end === "open" && (page.records.length === 0 || this.#barren >= BARREN_PAGES_MAX)) this.#end = "reached";
    return fresh;
  }

  #fail(number: number, error: ServiceError): void {
    const isRefusal = error.kind === "client_error" || error.kind === "not_found";
    // Some services answer a page past the end with a 4xx, and some every page past some record.
    if (isRefusal && number > this.#last.page) {
      if (this.#end === "open") this.#end = this.missing() < this.#size / 2 ? "reached" : "refused";
      if (this.#end === "reached") return;
    }
    this.#failures.push(error);
    if (!this.isWorthwhile() && this.#end === "open") this.#end = "cut";
  }

  /** The number of the next page to read; null: there is none, as far as is known. */
  nextPage(): number | null {
    return this.hasMore() ? this.#next++ : null;
  }

  hasMore(): boolean {
    const asked = this.#next - this.#walk.habits.first;
    if (asked >= PAGES_MAX && this.#end === "open") this.#end = "cut";
    if (this.#end !== "open") return false;
    if (asked * this.#size < this.#total - this.#walk.habits.difference) return true;
    // By its total the list ends here. Only a page that is not full proves that it does.
    const { page, length } = this.#last;
    return (
      page === this.#next - 1 && length >= this.#size && !(asked === 1 && length <= this.#walk.habits.singlePageMax)
    );
  }

  /** Whether another page may fare better than those that failed. */
  isWorthwhile(): boolean {
    return this.#failures.length < FAILURES_MAX && !this.#failures.some(isHopeless);
  }

  /** Records that the list counts and that were not seen, beyond the constant difference. */
  missing(): number {
    return this.#total - this.#seen - this.#walk.habits.difference;
  }

  /** A walk that begins on the second page of a service that counts from 0 misses the whole first page. */
  missesAPage(): boolean {
    const missed = this.#total - this.#seen;
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
    return isWhole && this.#failures.length === 0 && this.#barren < BARREN_PAGES_MAX;
  }

  #rereadsMax(): number {
    return Math.max(REREADS_MIN, Math.floor(this.#totals.size * REREADS_SHARE));
  }

  /** Keeps for the next walk what this one showed. `echo`: the page size that the service says is in force. */
  learn(echo: number | null): void {
    const { habits } = this.#walk;
    const isSinglePage = this.#last.page <= habits.first;
    habits.size = isSinglePage ? Math.max(this.#size, Math.min(echo ?? this.#size, habits.limit)) : this.#size;
    habits.shortWalks = this.missesAPage() ? habits.shortWalks + 1 : 0;
    if (habits.shortWalks >= SHORT_WALKS_MAX) {
      habits.shortWalks = 0;
      habits.firstKnown = false;
      habits.first = 1;
    }
    if (this.#end === "cut" || this.#failures.length > 0) return;
    if (this.#seen > 0 && this.#seen >= this.#total) habits.firstKnown = true;
    const isIgnored = this.#barren >= BARREN_PAGES_MAX;
    if (isSinglePage && (isIgnored || this.#last.length < habits.limit)) {
      habits.singlePageMax = Math.max(habits.singlePageMax, this.#last.length);
    }
    const difference = this.#total - this.#seen;
    const walks = difference === habits.latest.difference ? habits.latest.walks + 1 : 1;
    habits.latest = { difference, walks };
    if (walks >= CONSTANT_WALKS) habits.difference = difference;
  }

  report(): WalkReport {
    const { difference } = this.#walk.habits;
    return {
      end: this.#end === "open" ? "reached" : this.#end,
      total: this.#total,
      seen: this.#seen,
      isExact: this.#failures.length === 0 && this.#end !== "cut" && this.#total - this.#seen === difference,
      difference,
      pages: this.#pages,
      error: this.#failures[0] ?? null,
    };
  }
}

/** The first page; where a large limit is refused and a smaller one is not, with the smaller one for a while. */
async function fetchFirst(walk: Walk, signal: AbortSignal): Promise<Fetched> {
  const { habits } = walk;
  if (habits.walks++ % WALKS_TO_DOUBT === 0) changeLimit(habits, habits.wish);
  const fetched = await walk.fetch({ page: habits.first, limit: habits.limit }, signal);
  if (fetched.ok || fetched.error.kind !== "client_error" || habits.limit <= PAGE_LIMIT_FALLBACK) return fetched;
  const smaller = await walk.fetch({ page: habits.first, limit: PAGE_LIMIT_FALLBACK }, signal);
  if (smaller.ok) changeLimit(habits, PAGE_LIMIT_FALLBACK);
  return smaller;
}

/** Another page size ends on another last page. */
function changeLimit(habits: PageHabits, limit: number): void {
  habits.limit = limit;
  habits.singlePageMax = 0;
}

/**
 * A walk that misses a page may have begun on the second page of a service that counts from 0. Its page 0 is then nearly
 * all new; that of a service that takes page 0 for page 1 is not.
 */
async function lookForPageZero(walk: Walk, progress: WalkProgress, signal: AbortSignal): Promise<void> {
  const { habits } = walk;
  const fetched = await walk.fetch({ page: 0, limit: habits.limit }, signal);
  if (!fetched.ok) {
    if (fetched.error.kind === "client_error" || fetched.error.kind === "not_found") habits.firstKnown = true;
    return;
  }
  const fresh = progress.take(0, fetched);
  if (fresh > fetched.value.page.records.length / 2) habits.first = 0;
  habits.firstKnown = true;
}
