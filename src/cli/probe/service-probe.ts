import { attemptCall, type CallAttemptDeps } from "../../api-client/call-attempt.ts";
import { decodeNodeDetail, decodePage, type RawPage } from "../../api-client/decoding/records.ts";
import { type Call, ENDPOINTS, listNodesCall, listSessionsCall, readNodeCall } from "../../api-client/endpoints.ts";
import { readJson } from "../../api-client/json-body.ts";
import { PAGE_LIMIT_FALLBACKS } from "../../api-client/pagination/list-walk.ts";
import type { NodeDetail } from "../../model/node.ts";
import type { TransportResponse } from "../../model/ports.ts";
import type { Category } from "../../rate-limit/limits.ts";

/** One call of a probe. */
export interface ProbedCall {
  readonly path: string;
  readonly category: Category;
  readonly scope: string;
  /** Status of the response, or null if none was received. */
  readonly status: number | null;
  /** Headers by name in lower case. Empty if there is no response. */
  readonly headers: TransportResponse["headers"];
  /** Why there is no response, or null if there is one. */
  readonly error: string | null;
}

/** A page that was read, and its requested size. */
export interface ProbedPage {
  readonly limit: number;
  readonly page: RawPage;
}

/** Observed behavior of a service. */
export interface ServiceObservation {
  readonly calls: readonly ProbedCall[];
  /** Page 1 of the nodes, or null if it was not read or is invalid. */
  readonly nodes: ProbedPage | null;
  readonly sessions: ProbedPage | null;
  /** Page 0 of the nodes, `rejected` after a 4xx, or null if it was not requested or is invalid. */
  readonly pageZero: RawPage | "rejected" | null;
  /** Page 2 of the nodes, or null if it was not requested or is invalid. */
  readonly pageTwo: RawPage | null;
  readonly details: readonly NodeDetail[];
}

/** Number of nodes whose detail is read. */
export const DETAILS_READ = 3;
/** Maximum number of calls: page 1 in each page size, pages 0 and 2, the details and a page of sessions. */
export const PROBE_CALLS_MAX = 1 + PAGE_LIMIT_FALLBACKS.length + 2 + DETAILS_READ + 1;

/**
 * Finds out what the spec leaves open. All calls are read-only, and each has a permit of the rate limiter. Never
 * rejects.
 */
export async function observeService(
  deps: CallAttemptDeps,
  pageLimit: number,
  stop: AbortSignal,
): Promise<ServiceObservation> {
  const prober = new Prober(deps, stop);
  const nodes = await prober.firstPage(pageLimit);
  const pageZero = nodes !== null && hasMore(nodes.page) ? await prober.pageZero(nodes.limit) : null;
  const isRepeated = nodes !== null && isPage(pageZero) && sharesRecords(pageZero, nodes.page);
  const pageTwo = isRepeated ? await prober.page(listNodesCall({ page: 2, limit: nodes.limit })) : null;
  const listed = [...(nodes?.page.records ?? []), ...(isPage(pageZero) ? pageZero.records : [])];
  const details = await prober.details(sampleOf(listed));
  const limit = nodes?.limit ?? pageLimit;
  const page = await prober.page(listSessionsCall({ page: 1, limit }));
  return {
    calls: prober.calls,
    nodes,
    pageZero,
    pageTwo,
    details,
    sessions: page === null ? null : { limit, page },
  };
}

const hasMore = ({ records, total }: RawPage): boolean => total > records.length;

/** Returns whether page 0 could be read. */
export const isPage = (page: RawPage | "rejected" | null): page is RawPage => page !== null && page !== "rejected";

const idOf = (record: unknown): unknown => (record as { readonly id?: unknown } | null)?.id;

/**
 * Returns whether at least half of the records of a page are on the other one as well. If so, both show the same part
 * of a changing list.
 */
export function sharesRecords(one: RawPage, other: RawPage): boolean {
  const ids = new Set(other.records.map(idOf));
  const shared = one.records.filter((record) => ids.has(idOf(record))).length;
  return shared > 0 && shared * 2 >= one.records.length;
}

/** Returns the ids of some records, spread over the list. */
function sampleOf(records: readonly unknown[]): readonly string[] {
  const ids = records.map(idOf).filter((id) => typeof id === "string" && id !== "") as string[];
  const spread = Array.from({ length: DETAILS_READ }, (_, n) => ids[Math.floor((n * ids.length) / DETAILS_READ)]);
  return [...new Set(spread)].filter((id) => id !== undefined);
}

/**
 * Makes the calls. After a 401, a 429 or a call without a response it makes no further calls, because they would fail
 * as well.
 */
class Prober {
  readonly calls: ProbedCall[] = [];
  readonly #deps: CallAttemptDeps;
  readonly #stop: AbortSignal;

  constructor(deps: CallAttemptDeps, stop: AbortSignal) {
    this.#deps = deps;
    this.#stop = stop;
  }

  /** Reads page 1 of the nodes. If the service rejects the page size, it asks for smaller ones, as the daemon does. */
  async firstPage(pageLimit: number): Promise<ProbedPage | null> {
    for (const limit of [pageLimit, ...PAGE_LIMIT_FALLBACKS.filter((size) => size < pageLimit)]) {
      const page = await this.page(listNodesCall({ page: 1, limit }));
      if (page !== null) return { limit, page };
      if (!this.#isLastRejected()) return null;
    }
    return null;
  }

  async pageZero(limit: number): Promise<RawPage | "rejected" | null> {
    const page = await this.page(listNodesCall({ page: 0, limit }));
    return page === null && this.#isLastRejected() ? "rejected" : page;
  }

  async page(call: Call): Promise<RawPage | null> {
    const page = decodePage(await this.#send(call));
    return page.ok ? page.value : null;
  }

  async details(ids: readonly string[]): Promise<readonly NodeDetail[]> {
    const details: NodeDetail[] = [];
    for (const id of ids) {
      const detail = decodeNodeDetail(await this.#send(readNodeCall(id)), () => {});
      if (detail !== null) details.push(detail);
    }
    return details;
  }

  /** Returns the JSON of a 2xx response, or null if there is none. */
  async #send(call: Call): Promise<unknown> {
    if (this.calls.some(({ status }) => status === null || status === 401 || status === 429)) return null;
    const attempt = await attemptCall(this.#deps, call, "walk", this.#stop);
    const { category, scope } = ENDPOINTS[call.endpoint];
    if (attempt.kind === "failed") {
      const { message } = attempt.error;
      this.calls.push({ path: call.path, category, scope, status: null, headers: {}, error: message });
      return null;
    }
    const { status, headers } = attempt.response;
    this.calls.push({ path: call.path, category, scope, status, headers, error: null });
    const json = readJson(attempt.response);
    return status >= 200 && status < 300 && json.ok ? json.value : null;
  }

  /** Returns whether the last call was answered with a 4xx because of its parameters. */
  #isLastRejected(): boolean {
    const status = this.calls.at(-1)?.status ?? 0;
    return status >= 400 && status < 500 && ![401, 403, 404, 429].includes(status);
  }
}
