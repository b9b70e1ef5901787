import { ok, type Result } from "../../base/result.ts";
import { type ApiError, isRequestRejected } from "../errors.ts";
import type { ListBehaviour, ListWalk, WalkReport } from "./list-walk.ts";
import { type FetchedPage, WalkProgress } from "./walk-progress.ts";

/** Requested if the service rejects a larger limit. */
export const PAGE_LIMIT_FALLBACK = 100;
/** Requested if the service rejects that too: the spec shows no largest limit. */
const PAGE_LIMIT_MIN = 20;
/** What was learned is tried again after so many walks: the refusal of a page size may have been a passing fault. */
const WALKS_TO_DISTRUST_TOTAL = 100;
/** Where a list ends is proved again, by one page more, after so many walks: its total may no longer be true. */
const WALKS_TO_TRUST_TOTAL = 30;

/** Walks a list to its end (spec, section 2.5). Fails only where the first page fails. */
export async function walkList(walk: ListWalk, signal: AbortSignal): Promise<Result<WalkReport, ApiError>> {
  const { behaviour } = walk;
  const first = await fetchFirstPage(walk, signal);
  if (!first.ok) return first;
  const progress = new WalkProgress(walk);
  progress.take(behaviour.first, first);
  const read = async (page: number) => progress.take(page, await walk.fetch({ page, limit: behaviour.limit }, signal));
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
  if (progress.missesAPage() && !behaviour.firstKnown && !signal.aborted) await probePageZero(walk, progress, signal);
  for (const page of progress.gaps()) if (progress.isWorthwhile() && !signal.aborted) await read(page);
  for (const page of progress.head()) {
    if (progress.missing() > 0 && progress.isWorthwhile() && !signal.aborted) await read(page);
  }
  if (signal.aborted) progress.cut();
  return ok(progress.close(first.value.page.limit));
}

/** The first page, whatever its number. */
async function fetchFirstPage(walk: ListWalk, signal: AbortSignal): Promise<FetchedPage> {
  const { behaviour } = walk;
  if (behaviour.walks % WALKS_TO_DISTRUST_TOTAL === 0) setPageLimit(behaviour, behaviour.requestedLimit);
  if (behaviour.walks % WALKS_TO_TRUST_TOTAL === 0) forgetLastPage(behaviour);
  behaviour.walks++;
  const fetched = await fetchPage(walk, behaviour.first, signal);
  if (fetched.ok || !isRequestRejected(fetched.error) || behaviour.firstKnown || behaviour.first === 0) return fetched;
  // A service that counts its pages from 0 may refuse page 1 of a short list.
  const zero = await fetchPage(walk, 0, signal);
  if (!zero.ok) return fetched;
  behaviour.first = 0;
  behaviour.firstKnown = true;
  return zero;
}

/** One page; where its size is refused and a smaller one is not, with the smaller one for a while. */
async function fetchPage(walk: ListWalk, page: number, signal: AbortSignal): Promise<FetchedPage> {
  const { behaviour } = walk;
  let fetched = await walk.fetch({ page, limit: behaviour.limit }, signal);
  for (const limit of [PAGE_LIMIT_FALLBACK, PAGE_LIMIT_MIN].filter((each) => each < behaviour.limit)) {
    if (fetched.ok || fetched.error.kind !== "client_error") return fetched;
    fetched = await walk.fetch({ page, limit }, signal);
    if (fetched.ok) setPageLimit(behaviour, limit);
  }
  return fetched;
}

/** Another page size ends on another last page. */
function setPageLimit(behaviour: ListBehaviour, limit: number): void {
  behaviour.limit = limit;
  forgetLastPage(behaviour);
}

/** Has the next walk find out anew where the list ends. */
function forgetLastPage(behaviour: ListBehaviour): void {
  behaviour.singlePageMax = 0;
  behaviour.provenTotal = null;
}

/**
 * A walk that misses a page may have begun on the second page of a service that counts from 0. Its page 0 is then nearly
 * all new; that of a service that takes page 0 for page 1 is not.
 */
async function probePageZero(walk: ListWalk, progress: WalkProgress, signal: AbortSignal): Promise<void> {
  const { behaviour } = walk;
  const fetched = await walk.fetch({ page: 0, limit: behaviour.limit }, signal);
  if (!fetched.ok) {
    if (isRequestRejected(fetched.error)) behaviour.firstKnown = true;
    return;
  }
  const isRepeating = progress.isRepeating();
  const fresh = progress.take(0, fetched);
  // A service that answers every page with one and the same proves nothing.
  if (isRepeating) return;
  if (fresh > fetched.value.page.records.length / 2) behaviour.first = 0;
  behaviour.firstKnown = true;
}
