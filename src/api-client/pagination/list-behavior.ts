import type { Result } from "../../base/result.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createMeanLatency, createPagesInFlight } from "../../rate-limit/collector-concurrency.ts";
import type { PageQuery } from "../endpoints.ts";
import type { ApiError } from "../errors.ts";

/** How many more records a list states than it shows, negative if fewer. */
interface TotalDifference {
  /** Difference in the last walk. */
  readonly records: number;
  /** Difference in the first of the latest walks in a row that had a similar one. */
  readonly first: number;
  /** Number of walks in a row with exactly this difference. */
  readonly same: number;
  /** Number of walks in a row whose difference was within half a page of the first. */
  readonly similar: number;
}

/** Creates what walks have shown about a list before the first one. `requestedLimit` is the page size as configured. */
export const createListBehavior = (requestedLimit: number) => ({
  requestedLimit,
  /** Page size to request: the configured one, or a smaller one if the service rejected it or took too long for it. */
  limit: requestedLimit,
  /** Page size that the service rejected in this walk before it accepted `limit`, or null if it rejected none. */
  rejectedLimit: null as number | null,
  /** Number of the walk in which larger page sizes than `limit` are tried again. */
  nextSizeTrial: 0,
  /** Number of walks so far. */
  walks: 0,
  /** Number of records of a full page, or null before the first walk. */
  pageSize: null as number | null,
  /**
   * Length of the longest first page that was proven to be the only page. A shorter first page is the only one as well.
   */
  singlePageMax: 0,
  /** A total that was proven to match the records of the list, or null if there is none. */
  provenTotal: null as number | null,
  /** Whether the service returned the first page for every page number. */
  ignoresPage: false,
  /** Number of the first page, or 1 until a page 0 is found. */
  first: 1 as 0 | 1,
  /** Whether `first` is proven. Otherwise, the next walk begins with page 1. */
  firstKnown: false,
  /** Number of walks in a row whose first page was rejected in every size. */
  rejectedWalks: 0,
  /** Number of walks whose first page timed out, was reset or got a 5xx, since the last that succeeded or was rejected. */
  failedWalks: 0,
  /** Number of walks in a row that missed about a page although no page failed. */
  shortWalks: 0,
  /** Difference between total and records in recent walks. */
  difference: { records: 0, first: 0, same: 0, similar: 0 } as TotalDifference,
  /** Mean latency of a page. */
  latency: createMeanLatency(),
  pagesInFlight: createPagesInFlight(),
});

/**
 * What walks have shown about a list. The spec defines neither the largest page size nor the number of the first page.
 */
export type ListBehavior = ReturnType<typeof createListBehavior>;

/** A page whose records have been processed. */
interface ReadPage {
  /** When it was observed. */
  readonly at: MonotonicMs;
  /** Number of records in the list, as the page states it. */
  readonly total: number;
  /** The page size that the service states, or null if it states none. */
  readonly limit: number | null;
  /** Number of its records. */
  readonly length: number;
  /** Number of those that are new in this walk. */
  readonly fresh: number;
}

/** A page, or why it could not be read. */
export type PageResult = Result<ReadPage, ApiError>;

/** A list to walk. */
export interface ListWalk {
  /** Reads a page and processes its records. */
  read(query: PageQuery, signal: AbortSignal): Promise<PageResult>;
  readonly behavior: ListBehavior;
  /** Maximum number of concurrent pages, at least 1; read again after each page. */
  inFlight(): number;
}
