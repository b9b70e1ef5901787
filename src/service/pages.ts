import type { Share } from "../base/percent.ts";
import { ok, type Result } from "../base/result.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { PageQuery } from "./endpoints.ts";
import type { ServiceError } from "./errors.ts";
import type { RawPage } from "./wire.ts";

/** What one list is known to do, kept from walk to walk: the spec shows neither the largest page nor the first number. */
export interface PageHabits {
  /** What the configuration asks for. */
  readonly wish: number;
  /** What is asked for: the wish, or {@link PAGE_LIMIT_FALLBACK} where the service refused that. */
  limit: number;
  /** Walks with the fallback until the wish is tried again. */
  walksToWish: number;
  /** Records that a full page really holds; null before the first walk. */
  size: number | null;
  /** Number of the first page; taken for 1 until a walk that falls short finds a page 0. */
  first: 0 | 1;
  /** Whether {@link first} has been proved. */
  firstKnown: boolean;
  /** Walks in a row that fell short although no page failed. */
  shortWalks: number;
}

/** Nothing known yet of a list. */
export const newPageHabits = (wish: number): PageHabits => ({
  wish,
  limit: wish,
  walksToWish: 0,
  size: null,
  first: 1,
  firstKnown: false,
  shortWalks: 0,
});

/** One list to walk. */
export interface Walk {
  fetch(query: PageQuery, signal: AbortSignal): Promise<Result<{ page: RawPage; at: MonotonicMs }, ServiceError>>;
  /** Takes in the records of one page; says how many of them this walk had not met before. */
  fold(records: readonly unknown[], at: MonotonicMs): number;
  readonly habits: PageHabits;
  /** Share of the total that must have been seen: less than 1 where the list churns while it is walked. */
  readonly share: Share;
}

/** How a walk went. */
export interface WalkReport {
  /** No page failed, and the records seen account for the total. Then, and only then, what is missing is gone. */
  readonly complete: boolean;
  readonly total: number;
  readonly seen: number;
  /** The list moved while it was walked: its total changed, or a record came twice. */
  readonly drifted: boolean;
  /** The first failure of a page; null where all came. */
  readonly error: ServiceError | null;
}

/** Asked for where a large limit is refused: a page size that every paginated service takes. */
export const PAGE_LIMIT_FALLBACK = 100;
/** Pages under way at once: enough to hide latency; the budget, not the client, is the limit. */
const PAGES_IN_FLIGHT_MAX = 3;
/** A total that asks for more pages than this is a fault of the service: ten million sessions are not more at 500 a page. */
const PAGES_MAX = 20_000;
/** A refused page size is asked for again after so many walks: the refusal may have been a passing fault. */
const WALKS_TO_WISH = 100;
/** After so many short walks in a row what was learned of the first page is doubted. */
const SHORT_WALKS_MAX = 3;
/** Pages of one walk that may fail before the rest is not asked for. */
const FAILURES_MAX = 3;

/** Errors after which another page of the same list would fare no better, or cost what we don't have. */
const hopeless: ReadonlySet<ServiceError["kind"]> = new Set([
  "rate_limited",
  "unauthorized",
  "forbidden",
  "redirected",
  "aborted",
]);

/** Walks a list to its end. A failed first page fails the walk; a later one makes it incomplete. */
export async function walkPages(walk: Walk, signal: AbortSignal): Promise<Result<WalkReport, ServiceError>> {
  const { habits } = walk;
  const first = await fetchFirst(walk, signal);
  if (!first.ok) return first;
  const progress = startProgress(walk, first.value);
  let next = habits.first + 1;
  const walker = async () => {
    while (next <= progress.lastPage() && progress.worthMore() && !signal.aborted) {
      progress.take(await walk.fetch({ page: next++, limit: habits.limit }, signal));
    }
  };
  await Promise.all(Array.from({ length: PAGES_IN_FLIGHT_MAX }, walker));
  if (progress.fellShort() && !habits.firstKnown && !signal.aborted) await lookForPageZero(walk, progress, signal);
  habits.size = progress.pageSize();
  learnFirst(habits, progress);
  return ok(progress.report());
}

type Fetched = Awaited<ReturnType<Walk["fetch"]>>;
type Progress = ReturnType<typeof startProgress>;

/** What a walk has met so far. */
function startProgress(walk: Walk, first: Extract<Fetched, { ok: true }>["value"]) {
  const { habits, share } = walk;
  const failures: ServiceError[] = [];
  const totals = new Set<number>();
  let total = 0;
  let received = 0;
  let seen = 0;
  // The largest page so far: a short one says nothing of how many a full one holds.
  let size = 1;
  let isAtEnd = false;

  const accountsForTotal = () => seen >= Math.ceil(total * share);
  const progress = {
    /** Takes in a page; returns how many of its records are new. */
    take(fetched: Fetched): number {
      if (!fetched.ok) {
        failures.push(fetched.error);
        return 0;
      }
      const { page, at } = fetched.value;
      const before = seen;
      total = page.total;
      totals.add(total);
      received += page.records.length;
      size = Math.max(size, page.records.length);
      if (page.records.length === 0) isAtEnd = true;
      seen += walk.fold(page.records, at);
      return seen - before;
    },
    pageSize: () =>
      seen < total || total > size ? size : Math.max(size, Math.min(first.page.limit ?? size, habits.limit)),
    lastPage: () => (isAtEnd ? 0 : habits.first + Math.min(PAGES_MAX, Math.ceil(total / size)) - 1),
    worthMore: () => failures.length < FAILURES_MAX && !failures.some(({ kind }) => hopeless.has(kind)),
    isComplete: () => failures.length === 0 && accountsForTotal(),
    fellShort: () => failures.length === 0 && !accountsForTotal(),
    /** A complete walk of an empty list proves nothing. */
    provesFirst: () => progress.isComplete() && total > 0,
    report: (): WalkReport => ({
      complete: progress.isComplete(),
      total,
      seen,
      drifted: totals.size > 1 || received > seen,
      error: failures[0] ?? null,
    }),
  };
  progress.take(ok(first));
  return progress;
}

/** The first page; where a large limit is refused and a smaller one is not, with the smaller one for a while. */
async function fetchFirst(walk: Walk, signal: AbortSignal): Promise<Fetched> {
  const { habits } = walk;
  if (habits.limit !== habits.wish && --habits.walksToWish <= 0) habits.limit = habits.wish;
  const fetched = await walk.fetch({ page: habits.first, limit: habits.limit }, signal);
  if (fetched.ok || fetched.error.kind !== "client_error" || habits.limit <= PAGE_LIMIT_FALLBACK) return fetched;
  const smaller = await walk.fetch({ page: habits.first, limit: PAGE_LIMIT_FALLBACK }, signal);
  if (smaller.ok) {
    habits.limit = PAGE_LIMIT_FALLBACK;
    habits.walksToWish = WALKS_TO_WISH;
  }
  return smaller;
}

/**
 * A walk that fell short may have begun on the second page of a service that counts from 0. Its page 0 is then nearly
 * all new; that of a service that takes page 0 for page 1 is not.
 */
async function lookForPageZero(walk: Walk, progress: Progress, signal: AbortSignal): Promise<void> {
  const fetched = await walk.fetch({ page: 0, limit: walk.habits.limit }, signal);
  if (!fetched.ok) {
    if (fetched.error.kind === "client_error" || fetched.error.kind === "not_found") walk.habits.firstKnown = true;
    return;
  }
  const fresh = progress.take(fetched);
  if (fresh > fetched.value.page.records.length / 2) walk.habits.first = 0;
  walk.habits.firstKnown = true;
}

function learnFirst(habits: PageHabits, progress: Progress): void {
  habits.shortWalks = progress.fellShort() ? habits.shortWalks + 1 : 0;
  if (progress.provesFirst()) habits.firstKnown = true;
  if (habits.shortWalks < SHORT_WALKS_MAX) return;
  habits.shortWalks = 0;
  habits.firstKnown = false;
  habits.first = 1;
}
