import { attemptCall, type CallAttemptDeps } from "../../api-client/call-attempt.ts";
import { decodeNodeDetail, decodePage, type RawPage } from "../../api-client/decoding/records.ts";
import { type Call, ENDPOINTS, listNodesCall, listSessionsCall, readNodeCall } from "../../api-client/endpoints.ts";
import type { ApiError } from "../../api-client/errors.ts";
import { readJson } from "../../api-client/json-body.ts";
import { PAGE_LIMIT_FALLBACKS, smallerPageLimits } from "../../api-client/pagination/list-walk.ts";
import { fail, ok, type Result } from "../../base/result.ts";
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
  /** Why there is no response, or why a 2xx can't be read. Null otherwise. */
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
  /** Page 1 of the nodes, without records if only page 0 is accepted. Null if neither was read, or it is invalid. */
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
/** Maximum number of calls: page 1 in each size, page 0 in two, page 2, the details and a page of sessions. */
export const PROBE_CALLS_MAX = 1 + PAGE_LIMIT_FALLBACKS.length + 3 + DETAILS_READ + 1;

/**
 * Makes the calls that show what the API documentation leaves open. All are read-only, and each has a permit of the rate
 * limiter. After a 401, a 429 or a call without a response, no further calls are made, because they would fail as well.
 * Never rejects.
 */
export async function observeService(
  deps: CallAttemptDeps,
  pageLimit: number,
  stop: AbortSignal,
): Promise<ServiceObservation> {
  const calls: ProbedCall[] = [];

  /** Returns the content of a 2xx response, or null if there is none or it can't be read. */
  async function send<T>(call: Call, decode: (json: unknown) => Result<T, ApiError>): Promise<T | null> {
    if (calls.some(({ status }) => status === null || status === 401 || status === 429)) return null;
    const attempt = await attemptCall(deps, call, "walk", stop);
    const { category, scope } = ENDPOINTS[call.endpoint];
    const sent = { path: call.path, category, scope };
    if (attempt.kind === "failed") {
      calls.push({ ...sent, status: null, headers: {}, error: attempt.error.message });
      return null;
    }
    const { status, headers } = attempt.response;
    const content = status >= 200 && status < 300 ? readContent(attempt.response, decode) : null;
    calls.push({ ...sent, status, headers, error: content?.ok === false ? content.error : null });
    return content?.ok === true ? content.value : null;
  }

  const readPage = (call: Call) => send(call, decodePage);

  // If the service rejects the page size, smaller ones are tried, as the daemon does.
  let nodes: ProbedPage | null = null;
  let limit = pageLimit;
  for (const size of [pageLimit, ...smallerPageLimits(pageLimit)]) {
    limit = size;
    const page = await readPage(listNodesCall({ page: 1, limit }));
    nodes = page && { limit, page };
    // A 404 does not depend on the size.
    if (!isLastRejected(calls) || calls.at(-1)!.status === 404) break;
  }
  let pageZero: ServiceObservation["pageZero"] = null;
  // A service that counts pages from 0 may reject page 1 of a short list, in every size or only in larger ones.
  if (nodes !== null && limit < pageLimit && nodes.page.total <= pageLimit) {
    const page = await readPage(listNodesCall({ page: 0, limit: pageLimit }));
    const start = page && { ...page, records: page.records.slice(0, limit) };
    if (start !== null && start.records.length > 0 && !sharesRecords(start, nodes.page)) {
      nodes = null;
      pageZero = page;
    }
  }
  // If every size is rejected, the size is not the cause.
  if (nodes === null) limit = pageLimit;
  if (pageZero === null && (nodes === null ? isLastRejected(calls) : mayHaveMore(nodes))) {
    const page = await readPage(listNodesCall({ page: 0, limit }));
    pageZero = isLastRejected(calls) ? "rejected" : page;
  }
  // A rejected page 1 counts as empty if there is a page 0.
  if (nodes === null && isPage(pageZero)) nodes = { limit, page: { ...pageZero, records: [] } };
  const isRepeated = nodes !== null && isPage(pageZero) && sharesRecords(pageZero, nodes.page);
  const pageTwo = isRepeated ? await readPage(listNodesCall({ page: 2, limit })) : null;
  const listed = [...(nodes?.page.records ?? []), ...(isPage(pageZero) ? pageZero.records : [])];
  const details: NodeDetail[] = [];
  for (const id of sampleOf(listed)) {
    const detail = await send(readNodeCall(id), (json) => ok(decodeNodeDetail(json, () => {})));
    if (detail !== null) details.push(detail);
  }
  const firstPage = isPage(pageZero) && pageZero.records.length > 0 && !isRepeated ? 0 : 1;
  const page = await readPage(listSessionsCall({ page: firstPage, limit }));
  return { calls, nodes, pageZero, pageTwo, details, sessions: page && { limit, page } };
}

function readContent<T>(
  response: TransportResponse,
  decode: (json: unknown) => Result<T, ApiError>,
): Result<T, string> {
  const json = readJson(response);
  if (!json.ok) return json;
  const content = decode(json.value);
  return content.ok ? content : fail(content.error.message);
}

/** Returns whether the last call was answered with a 4xx that is about neither the key nor its limits. */
function isLastRejected(calls: readonly ProbedCall[]): boolean {
  const status = calls.at(-1)?.status ?? 0;
  return status >= 400 && status < 500 && ![401, 403, 429].includes(status);
}

/** Returns whether a list may have more records than a page. The total on a full page may count only that page. */
export const mayHaveMore = ({ limit, page: { records, total } }: ProbedPage): boolean =>
  total > records.length || records.length >= limit;

/** Returns whether a page could be read. */
export const isPage = (page: RawPage | "rejected" | null): page is RawPage => page !== null && page !== "rejected";

const idOf = (record: unknown): unknown => (record as { readonly id?: unknown } | null)?.id;

/**
 * Returns whether at least half of the records of `one` are also on `other`. Both then show the same part of a list, which
 * may have changed in between.
 */
export function sharesRecords(one: RawPage, other: RawPage): boolean {
  const ids = new Set(other.records.map(idOf));
  const shared = one.records.filter((record) => ids.has(idOf(record))).length;
  return shared > 0 && shared * 2 >= one.records.length;
}

/** Returns the ids of at most {@link DETAILS_READ} records, spread over the list. */
function sampleOf(records: readonly unknown[]): readonly string[] {
  const ids = records.map(idOf).filter((id) => typeof id === "string" && id !== "") as string[];
  const spread = Array.from({ length: DETAILS_READ }, (_, n) => ids[Math.floor((n * ids.length) / DETAILS_READ)]);
  return [...new Set(spread)].filter((id) => id !== undefined);
}
