import type { Share } from "../base/percent.ts";
import { ok, type Result } from "../base/result.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { PageQuery } from "./endpoints.ts";
import type { ServiceError } from "./errors.ts";
import type { RawPage } from "./wire.ts";

/** What one list is known to do, kept from walk to walk: the spec shows neither the largest page nor the first number. */
export interface PageHabits {
  /** What is asked for. Falls back once to {@link PAGE_LIMIT_FALLBACK} where the service refuses it. */
  limit: number;
  /** Records that a full page really holds; null before the first walk. */
  size: number | null;
  /** Number of the first page; taken for 1 until a walk that falls short finds a page 0. */
  first: 0 | 1;
  /** Whether {@link first} has been proved. */
  firstKnown: boolean;
}

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
  readonly pages: number;
  /** The list moved while it was walked: its total changed, or a record came twice. */
  readonly drifted: boolean;
  /** The first failure of a page; null where all came. */
  readonly error: ServiceError | null;
}

/** Asked for where a large limit is refused: a page size that every paginated service takes. */
export const PAGE_LIMIT_FALLBACK = 100;
/** Pages under way at once: enough to hide latency; the budget, not the client, is the limit. */
const PAGES_IN_FLIGHT_MAX = 3;
/** A total that asks for more pages than this is a fault of the service, not a fleet. */
const PAGES_MAX = 50_000;
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
  if (!progress.isComplete() && progress.worthMore() && !habits.firstKnown && !signal.aborted) {
    await lookForPageZero(walk, progress, signal);
  }
  if (progress.isComplete()) habits.firstKnown = true;
  return ok({ ...progress.report(), pages: next - habits.first });
}

type Fetched = Awaited<ReturnType<Walk["fetch"]>>;

/** What a walk has met so far. */
function startProgress(walk: Walk, first: Extract<Fetched, { ok: true }>["value"]) {
  const { habits, share } = walk;
  const failures: ServiceError[] = [];
  const totals = new Set<number>();
  let total = 0;
  let received = 0;
  let seen = 0;
  const size = pageSize(first.page, habits.limit);
  habits.size = size;

  const progress = {
    take(fetched: Fetched): void {
      if (!fetched.ok) {
        failures.push(fetched.error);
        return;
      }
      total = fetched.value.page.total;
      totals.add(total);
      received += fetched.value.page.records.length;
      seen += walk.fold(fetched.value.page.records, fetched.value.at);
    },
    seen: () => seen,
    lastPage: () => habits.first + Math.min(PAGES_MAX, Math.ceil(total / size)) - 1,
    worthMore: () => failures.length < FAILURES_MAX && !failures.some(({ kind }) => hopeless.has(kind)),
    isComplete: () => failures.length === 0 && seen >= Math.ceil(total * share),
    report: () => ({
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

/** The first page; where a large limit is refused, with a smaller one from now on. */
async function fetchFirst(walk: Walk, signal: AbortSignal): Promise<Fetched> {
  const { habits } = walk;
  const fetched = await walk.fetch({ page: habits.first, limit: habits.limit }, signal);
  if (fetched.ok || fetched.error.kind !== "client_error" || habits.limit <= PAGE_LIMIT_FALLBACK) return fetched;
  habits.limit = PAGE_LIMIT_FALLBACK;
  return walk.fetch({ page: habits.first, limit: habits.limit }, signal);
}

/** A walk that fell short may have begun on the second page of a service that counts from 0. Asked once, then known. */
async function lookForPageZero(walk: Walk, progress: ReturnType<typeof startProgress>, signal: AbortSignal) {
  const fetched = await walk.fetch({ page: 0, limit: walk.habits.limit }, signal);
  const before = progress.seen();
  if (fetched.ok) progress.take(fetched);
  else if (fetched.error.kind !== "client_error" && fetched.error.kind !== "not_found") return;
  if (progress.seen() > before) walk.habits.first = 0;
  walk.habits.firstKnown = true;
}

/** Records a full page holds: what came, where more exist than came; the echo or the wish where all came at once. */
function pageSize(page: RawPage, asked: number): number {
  const came = page.records.length;
  if (came > 0 && came < page.total) return came;
  return Math.max(1, page.limit ?? asked, came);
}
