import { ok, type Result } from "../../base/result.ts";
import { type ApiError, isRequestRejected } from "../errors.ts";
import type { ListBehavior, ListWalk, WalkReport } from "./list-behavior.ts";
import { type FetchedPage, WalkProgress } from "./walk-progress.ts";

/** Limits to request, in this order, if the service rejects a larger one. The spec states no largest limit. */
export const PAGE_LIMIT_FALLBACKS = [100, 50, 20] as const;
/**
 * The configured page size is tried again after this many walks, since its rejection may have been a temporary fault.
 */
const WALKS_PER_PAGE_SIZE = 100;
/**
 * The end of a list is proven again, with one more page, after this many walks, since its total may have become wrong.
 */
const WALKS_PER_PROVEN_END = 30;

/** Reads a list to its end (spec, section 2.5). Fails only if the first page fails. */
export async function walkList(walk: ListWalk, signal: AbortSignal): Promise<Result<WalkReport, ApiError>> {
  const { behavior } = walk;
  const first = await fetchFirstPage(walk, signal);
  if (!first.ok) return first;
  const progress = new WalkProgress(walk);
  progress.record(behavior.first, first);
  const read = async (page: number) => progress.record(page, await walk.fetch({ page, limit: behavior.limit }, signal));
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
  if (progress.missesAPage() && !behavior.firstKnown && !signal.aborted) await probePageZero(walk, progress, signal);
  for (const page of progress.gaps()) if (progress.isWorthwhile() && !signal.aborted) await read(page);
  for (const page of progress.head()) {
    if (progress.missing() > 0 && progress.isWorthwhile() && !signal.aborted) await read(page);
  }
  if (signal.aborted) progress.cut();
  return ok(progress.close(first.value.page.limit));
}

/** Reads the first page, which has the number 1 or 0. */
async function fetchFirstPage(walk: ListWalk, signal: AbortSignal): Promise<FetchedPage> {
  const { behavior } = walk;
  if (behavior.walks % WALKS_PER_PAGE_SIZE === 0) setPageLimit(behavior, behavior.requestedLimit);
  if (behavior.walks % WALKS_PER_PROVEN_END === 0) forgetEnd(behavior);
  behavior.walks++;
  const fetched = await fetchPage(walk, behavior.first, signal);
  if (fetched.ok || !isRequestRejected(fetched.error) || behavior.firstKnown || behavior.first === 0) return fetched;
  // A service that counts pages from 0 may reject page 1 of a short list.
  const zero = await fetchPage(walk, 0, signal);
  if (!zero.ok) return fetched;
  behavior.first = 0;
  behavior.firstKnown = true;
  return zero;
}

/** Reads a page. If the service rejects its size, tries smaller ones, and keeps the first that it accepts. */
async function fetchPage(walk: ListWalk, page: number, signal: AbortSignal): Promise<FetchedPage> {
  const { behavior } = walk;
  let fetched = await walk.fetch({ page, limit: behavior.limit }, signal);
  for (const limit of PAGE_LIMIT_FALLBACKS.filter((size) => size < behavior.limit)) {
    if (fetched.ok || fetched.error.kind !== "client_error") return fetched;
    fetched = await walk.fetch({ page, limit }, signal);
    if (fetched.ok) setPageLimit(behavior, limit);
  }
  return fetched;
}

function setPageLimit(behavior: ListBehavior, limit: number): void {
  behavior.limit = limit;
  forgetEnd(behavior);
}

/** Makes the next walk prove again where the list ends. */
function forgetEnd(behavior: ListBehavior): void {
  behavior.singlePageMax = 0;
  behavior.provenTotal = null;
}

/**
 * Finds out whether a walk that misses a page began on the second page because the service counts from 0. If so, most
 * records of page 0 are new; if the service treats page 0 as page 1, they are not.
 */
async function probePageZero(walk: ListWalk, progress: WalkProgress, signal: AbortSignal): Promise<void> {
  const { behavior } = walk;
  const fetched = await walk.fetch({ page: 0, limit: behavior.limit }, signal);
  if (!fetched.ok) {
    if (isRequestRejected(fetched.error)) behavior.firstKnown = true;
    return;
  }
  const isRepeating = progress.isRepeating();
  const { length } = fetched.value.page.records;
  const fresh = progress.record(0, fetched);
  // A service that ignores the page number proves nothing.
  if (isRepeating) return;
  if (fresh > length / 2) behavior.first = 0;
  behavior.firstKnown = true;
}
