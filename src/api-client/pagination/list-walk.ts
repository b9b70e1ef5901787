import { ok, type Result } from "../../base/result.ts";
import { type ApiError, isPermanent, isRequestRejected } from "../errors.ts";
import type { ListBehavior, ListWalk, PageResult } from "./list-behavior.ts";
import { WalkProgress, type WalkReport } from "./walk-progress.ts";

/** Limits to request, in this order, if the service rejects a larger one. The spec states no largest limit. */
export const PAGE_LIMIT_FALLBACKS = [100, 50, 20] as const;

/** Returns the limits to request, in this order, if the service rejects `limit`. */
export const smallerPageLimits = (limit: number): readonly number[] =>
  PAGE_LIMIT_FALLBACKS.filter((size) => size < limit);

/** Larger page sizes are tried again after this many walks, since their failure may have been temporary. */
const WALKS_PER_PAGE_SIZE = 100;
/**
 * The end of a list is proven again, with one more page, after this many walks, since its total may have become wrong.
 * If about a page is missing, page 0 is tried again as well, since it may have been rejected for another reason.
 */
const WALKS_PER_PROVEN_END = 30;

/**
 * After a walk in which the service rejected every size, and page 0, the next ones ask only for the first page, since
 * something else may be wrong. All are tried again after this many walks.
 */
const REJECTED_WALKS_PER_TRIAL = 5;

/**
 * After this many walks in a row whose first page timed out, was reset or got a 5xx, every second one asks for fewer
 * records, since a large page may take the service too long.
 */
const FAILED_WALKS_PER_TRIAL = 2;
const SLOW_ERRORS: ReadonlySet<ApiError["kind"]> = new Set(["timeout", "server_error", "reset"]);

/** Reads a list to its end (spec, section 2.5). Fails only if the first page fails. */
export async function walkList(walk: ListWalk, signal: AbortSignal): Promise<Result<WalkReport, ApiError>> {
  const { behavior } = walk;
  const first = await readFirstPage(walk, signal);
  if (!first.ok) return first;
  const progress = new WalkProgress(walk);
  progress.record(behavior.first, first);
  const read = async (page: number) => progress.record(page, await walk.read({ page, limit: behavior.limit }, signal));
  const inFlight = new Set<Promise<void>>();
  const startReading = () => {
    while (inFlight.size < walk.inFlight() && progress.hasMore() && !signal.aborted) {
      const page = progress.takeNextPage();
      const reading: Promise<void> = read(page).then(() => {
        inFlight.delete(reading);
        startReading();
      });
      inFlight.add(reading);
    }
  };
  startReading();
  while (inFlight.size > 0) await Promise.race(inFlight);
  // A service that counts pages from 0 may have rejected page 1 of a short list only in larger sizes.
  const mayMissAPage = progress.mayMissAPage() || first.value.total <= (behavior.rejectedLimit ?? -1);
  if (mayMissAPage && !behavior.firstKnown && !signal.aborted) await probePageZero(walk, progress, signal);
  for (const page of progress.gaps()) if (progress.isWorthwhile() && !signal.aborted) await read(page);
  for (const page of progress.head()) {
    if (progress.missing() > 0 && progress.isWorthwhile() && !signal.aborted) await read(page);
  }
  if (signal.aborted) progress.cut();
  return ok(progress.close(first.value.limit));
}

/** Reads the first page, which has the number 1 or 0. */
async function readFirstPage(walk: ListWalk, signal: AbortSignal): Promise<PageResult> {
  const { behavior } = walk;
  behavior.walks++;
  behavior.rejectedLimit = null;
  // If the last walk began with page 0, the number of page 1 is more likely to be rejected than its size.
  const triesSizes = behavior.firstKnown || behavior.first === 1;
  if (!behavior.firstKnown) behavior.first = 1;
  if (behavior.walks % WALKS_PER_PROVEN_END === 0) {
    forgetEnd(behavior);
    if (behavior.first === 1) behavior.firstKnown = false;
  }
  const smaller = smallerLimit(behavior);
  const triesAll = behavior.rejectedWalks % REJECTED_WALKS_PER_TRIAL === 0;
  const first =
    smaller === null
      ? await readPage(walk, behavior.first, signal, triesAll && triesSizes)
      : await readSmallerPage(walk, smaller, signal);
  const isRejected = !first.ok && isRequestRejected(first.error);
  behavior.rejectedWalks = isRejected ? behavior.rejectedWalks + Number(triesSizes) : 0;
  if (first.ok || isRejected) behavior.failedWalks = 0;
  else if (SLOW_ERRORS.has(first.error.kind)) behavior.failedWalks++;
  if (!isRejected || !triesAll || behavior.firstKnown) return first;
  // A service that counts pages from 0 may reject page 1 of a short list.
  const zero = await readPage(walk, 0, signal);
  if (!zero.ok || (zero.value.length === 0 && zero.value.total > 0)) return first;
  behavior.first = 0;
  behavior.firstKnown = true;
  behavior.rejectedWalks = 0;
  return zero;
}

/** Returns the page size to read before larger ones are tried in this walk, or null to read only the usual one. */
function smallerLimit({ failedWalks, limit, requestedLimit, walks, nextSizeTrial }: ListBehavior): number | null {
  const sizes = smallerPageLimits(limit);
  if (sizes.length > 0 && failedWalks > 0 && failedWalks % FAILED_WALKS_PER_TRIAL === 0)
    return sizes[(failedWalks / FAILED_WALKS_PER_TRIAL - 1) % sizes.length]!;
  return limit < requestedLimit && walks >= nextSizeTrial ? limit : null;
}

/**
 * Reads the first page in a smaller size. If that fails, the size is not the cause, and no other is tried. If it
 * succeeds, the largest size that succeeds too is kept.
 */
async function readSmallerPage(walk: ListWalk, smallest: number, signal: AbortSignal): Promise<PageResult> {
  const { behavior, read } = walk;
  const small = await read({ page: behavior.first, limit: smallest }, signal);
  if (!small.ok) return small;
  const fallbacks = smallerPageLimits(behavior.requestedLimit).filter((size) => size > smallest);
  for (const limit of [behavior.requestedLimit, ...fallbacks]) {
    const larger = await read({ page: behavior.first, limit }, signal);
    if (larger.ok) {
      setPageLimit(behavior, limit);
      const { at, fresh } = small.value;
      return ok({ ...larger.value, at, fresh: fresh + larger.value.fresh });
    }
    if (isPermanent(larger.error)) {
      // A 429, for example, says nothing about the size.
      setPageLimit(behavior, smallest);
      behavior.nextSizeTrial = behavior.walks + 1;
      return small;
    }
  }
  setPageLimit(behavior, smallest);
  return small;
}

/** Reads a page. If the service rejects its size and `triesAll`, tries smaller ones, and keeps the first that it accepts. */
async function readPage(walk: ListWalk, page: number, signal: AbortSignal, triesAll = true): Promise<PageResult> {
  const { behavior } = walk;
  const largest = behavior.limit;
  let read = await walk.read({ page, limit: largest }, signal);
  for (const limit of triesAll ? smallerPageLimits(largest) : []) {
    if (read.ok || read.error.kind !== "client_error") return read;
    read = await walk.read({ page, limit }, signal);
    if (!read.ok) continue;
    setPageLimit(behavior, limit);
    behavior.rejectedLimit = largest;
  }
  return read;
}

/** Sets the page size to request. If it is smaller than the configured one, larger ones are tried again later. */
function setPageLimit(behavior: ListBehavior, limit: number): void {
  behavior.nextSizeTrial = behavior.walks + WALKS_PER_PAGE_SIZE;
  if (limit !== behavior.limit) forgetEnd(behavior);
  behavior.limit = limit;
}

/** Makes the next walk prove again where the list ends. */
function forgetEnd(behavior: ListBehavior): void {
  behavior.singlePageMax = 0;
  behavior.provenTotal = null;
}

/**
 * Finds out whether a walk that may miss a page began on the second page because the service counts from 0. If so, most
 * records of page 0 are new; if the service treats page 0 as page 1, they are not.
 */
async function probePageZero(walk: ListWalk, progress: WalkProgress, signal: AbortSignal): Promise<void> {
  const { behavior } = walk;
  const page = await walk.read({ page: 0, limit: behavior.limit }, signal);
  if (!page.ok) {
    if (isRequestRejected(page.error)) behavior.firstKnown = true;
    return;
  }
  const isRepeating = progress.isRepeating();
  progress.record(0, page);
  const { length, fresh } = page.value;
  const isNew = length > 0 && fresh > length / 2;
  // A service that ignores the page number, or an empty list, proves nothing. One that repeats the last page has a page 0.
  if (!isNew && (isRepeating || length === 0)) return;
  behavior.firstKnown = true;
  if (!isNew) return;
  behavior.first = 0;
  // The service may have rejected not the size of page 1, but its number.
  behavior.nextSizeTrial = behavior.walks + 1;
}
