import type { Result } from "../../base/result.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createMeanLatency, type MeanLatency } from "../../rate-limit/concurrency.ts";
import type { RawPage } from "../decoding/records.ts";
import type { PageQuery } from "../endpoints.ts";
import type { ApiError } from "../errors.ts";

/** What was learned of a list, kept between walks. The spec defines neither the largest page nor the first page number. */
export interface ListBehaviour {
  /** Page size that the configuration asks for. */
  readonly requestedLimit: number;
  /** Page size that is asked for: the requested one, or `PAGE_LIMIT_FALLBACK` if the service refused it. */
  limit: number;
  /** Walks so far: after every `WALKS_TO_DISTRUST_TOTAL` the page size and the last page are learned anew. */
  walks: number;
  /** Records that a full page holds; null before the first walk. */
  pageSize: number | null;
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
  difference: TotalDifference;
  /** How long its pages take, from sending. */
  readonly latency: MeanLatency;
}

/** How many more records a list counts than it shows; negative: fewer. */
interface TotalDifference {
  /** Of the last walk. */
  readonly records: number;
  /** Of the first walk of those that had about this difference. */
  readonly first: number;
  /** Walks in a row that had just this difference, and that had about the first one: within half a page. */
  readonly same: number;
  readonly similar: number;
}

/** Creates the state of a list that was never walked. */
export const createListBehaviour = (requestedLimit: number): ListBehaviour => ({
  requestedLimit,
  limit: requestedLimit,
  walks: 0,
  pageSize: null,
  singlePageMax: 0,
  provenTotal: null,
  ignoresPage: false,
  first: 1,
  firstKnown: false,
  shortWalks: 0,
  difference: { records: 0, first: 0, same: 0, similar: 0 },
  latency: createMeanLatency(),
});

/** A list to walk. */
export interface ListWalk {
  fetch(query: PageQuery, signal: AbortSignal): Promise<Result<{ page: RawPage; at: MonotonicMs }, ApiError>>;
  /** Takes in the records of one page; returns how many of them this walk had not seen before. */
  fold(records: readonly unknown[], at: MonotonicMs): number;
  readonly behaviour: ListBehaviour;
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
  readonly error: ApiError | null;
}
