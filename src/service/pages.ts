import { ok, type Result } from "../base/result.ts";
import { createMeanLatency, type MeanLatency } from "../budget/in-flight.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { PageQuery } from "./endpoints.ts";
import { isRefusal, type ServiceError } from "./errors.ts";
import { type Fetched, WalkProgress } from "./walk-progress.ts";
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
  /** The total at which a list that ends on a full page was seen to end; null: none was. */
  provenTotal: number | null;
  /** Whether the service answered every page with the first one. */
  ignoresPage: boolean;
  /** Number of the first page; taken for 1 until a walk that misses a page finds a page 0. */
  first: 0 | 1;
  /** Whether {@link first} has been proved. */
  firstKnown: boolean;
  /** Walks in a row that missed about a page although no page failed. */
  shortWalks: number;
  /** The total less the records shown, as the last walks had it. */
  difference: Difference;
  /** How long its pages take, from sending. */
  readonly latency: MeanLatency;
}

/** How many more records a list counts than it shows; negative: fewer. */
interface Difference {
  /** Of the last walk. */
  readonly records: number;
  /** Of the first walk of those that had about this difference. */
  readonly first: number;
  /** Walks in a row that had just this difference, and that had about the first one: within half a page. */
  readonly same: number;
  readonly similar: number;
}

/** Habits of a list that was never walked. */
export const newPageHabits = (wish: number): PageHabits => ({
  wish,
  limit: wish,
  walks: 0,
  size: null,
  singlePageMax: 0,
  provenTotal: null,
  ignoresPage: false,
  first: 1,
  firstKnown: false,
  shortWalks: 0,
  difference: { records: 0, first: 0, same: 0, similar: 0 },
  latency: createMeanLatency(),
});

/** One list to walk. */
export interface Walk {
  fetch(query: PageQuery, signal: AbortSignal): Promise<Result<{ page: RawPage; at: MonotonicMs }, ServiceError>>;
  /** Takes in the records of one page; returns how many of them this walk had not seen before. */
  fold(records: readonly unknown[], at: MonotonicMs): number;
  readonly habits: PageHabits;
  /** Pages to keep under way at once, from 1; asked again after each page. */
  inFlight(): number;
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
  /** By how much the total always differs from the records seen: about constant, as of the walks before; 0: it does not. */
  readonly difference: number;
  /** Pages read, repeated ones included. */
  readonly pages: number;
  /** The first failure of a page; null where all came. */
  readonly error: ServiceError | null;
}

/** Asked for where a large limit is refused: a page size that every paginated service takes. */
export const PAGE_LIMIT_FALLBACK = 100;
/** What was learned is tried again after so many walks: the refusal of a page size may have been a passing fault. */
const WALKS_TO_DOUBT = 100;
/** Where a list ends is proved again, by one page more, after so many walks: its total may no longer be true. */
const WALKS_TO_PROVE = 30;

/** Walks a list to its end (spec, section 2.5). Fails only where the first page fails. */
export async function walkPages(walk: Walk, signal: AbortSignal): Promise<Result<WalkReport, ServiceError>> {
  const { habits } = walk;
  const first = await fetchFirst(walk, signal);
  if (!first.ok) return first;
  const progress = new WalkProgress(walk);
  progress.take(habits.first, first);
  const read = async (page: number) => progress.take(page, await walk.fetch({ page, limit: habits.limit }, signal));
  const underWay = new Set<Promise<void>>();
  const startReading = () => {
    while (underWay.size < walk.inFlight() && progress.hasMore() && !signal.aborted) {
      const page = progress.takeNext();
      const reading: Promise<void> = read(page).then(() => {
        underWay.delete(reading);
        startReading();
      });
      underWay.add(reading);
    }
  };
  startReading();
  while (underWay.size > 0) await Promise.race(underWay);
  if (progress.missesAPage() && !habits.firstKnown && !signal.aborted) await lookForPageZero(walk, progress, signal);
  for (const page of progress.gaps()) if (progress.isWorthwhile() && !signal.aborted) await read(page);
  for (const page of progress.head()) {
    if (progress.missing() > 0 && progress.isWorthwhile() && !signal.aborted) await read(page);
  }
  if (signal.aborted) progress.cut();
  return ok(progress.close(first.value.page.limit));
}

/** The first page, whatever its number. */
async function fetchFirst(walk: Walk, signal: AbortSignal): Promise<Fetched> {
  const { habits } = walk;
  if (habits.walks % WALKS_TO_DOUBT === 0) changeLimit(habits, habits.wish);
  if (habits.walks % WALKS_TO_PROVE === 0) forgetEnd(habits);
  habits.walks++;
  const fetched = await fetchAt(walk, habits.first, signal);
  if (fetched.ok || !isRefusal(fetched.error) || habits.firstKnown || habits.first === 0) return fetched;
  // A service that counts its pages from 0 may refuse page 1 of a short list.
  const zero = await fetchAt(walk, 0, signal);
  if (!zero.ok) return fetched;
  habits.first = 0;
  habits.firstKnown = true;
  return zero;
}

/** One page; where its size is refused and a smaller one is not, with the smaller one for a while. */
async function fetchAt(walk: Walk, page: number, signal: AbortSignal): Promise<Fetched> {
  const { habits } = walk;
  const fetched = await walk.fetch({ page, limit: habits.limit }, signal);
  if (fetched.ok || fetched.error.kind !== "client_error" || habits.limit <= PAGE_LIMIT_FALLBACK) return fetched;
  const smaller = await walk.fetch({ page, limit: PAGE_LIMIT_FALLBACK }, signal);
  if (smaller.ok) changeLimit(habits, PAGE_LIMIT_FALLBACK);
  return smaller;
}

/** Another page size ends on another last page. */
function changeLimit(habits: PageHabits, limit: number): void {
  habits.limit = limit;
  forgetEnd(habits);
}

/** Has the next walk find out anew where the list ends. */
function forgetEnd(habits: PageHabits): void {
  habits.singlePageMax = 0;
  habits.provenTotal = null;
}

/**
 * A walk that misses a page may have begun on the second page of a service that counts from 0. Its page 0 is then nearly
 * all new; that of a service that takes page 0 for page 1 is not.
 */
async function lookForPageZero(walk: Walk, progress: WalkProgress, signal: AbortSignal): Promise<void> {
  const { habits } = walk;
  const fetched = await walk.fetch({ page: 0, limit: habits.limit }, signal);
  if (!fetched.ok) {
    if (isRefusal(fetched.error)) habits.firstKnown = true;
    return;
  }
  const isRepeating = progress.isRepeating();
  const fresh = progress.take(0, fetched);
  // A service that answers every page with one and the same proves nothing.
  if (isRepeating) return;
  if (fresh > fetched.value.page.records.length / 2) habits.first = 0;
  habits.firstKnown = true;
}
