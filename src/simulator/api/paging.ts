import type { Share } from "../../base/percent.ts";
import { ok, type Result } from "../../base/result.ts";
import type { ListOptions } from "../../config/schema/scenario.ts";
import { hash, type Uint32 } from "../hash.ts";
import {
  type EndpointCall,
  type EndpointError,
  type EndpointResult,
  endpointError,
  findFault,
} from "./endpoint-context.ts";

/** A requested page (spec, section 2.5). */
interface PageRequest {
  readonly page: number;
  /** The effective limit, after clamping. */
  readonly limit: number;
  /** The limit in the reply. */
  readonly statedLimit: number;
  readonly offset: number;
}

/** Reads page and limit from the query. */
function readPage({ service, query }: EndpointCall): Result<PageRequest, EndpointError> {
  const { firstPage, pageLimitDefault, pageLimitMax, pageLimitOver, pageLimitEcho } = service.options;
  const page = wholeNumber(query.get("page"), firstPage);
  if (page === null || page < firstPage) {
    return endpointError(
      400,
      "invalid_page",
      `page must be an integer of at least ${firstPage}, not ${quoted(query, "page")}`,
    );
  }
  const requested = wholeNumber(query.get("limit"), pageLimitDefault);
  if (requested === null || requested < 1 || (requested > pageLimitMax && pageLimitOver === "reject")) {
    const message = `limit must be an integer from 1 to ${pageLimitMax}, not ${quoted(query, "limit")}`;
    return endpointError(400, "invalid_limit", message);
  }
  const limit = Math.min(requested, pageLimitMax);
  const statedLimit = pageLimitEcho === "effective" ? limit : requested;
  return ok({ page, limit, statedLimit, offset: (page - firstPage) * limit });
}

/** A list with pages. `Item` is the form in which the list is stored, such as a slot. */
interface PagedList<Item, T extends { readonly id: string }> {
  readonly options: ListOptions<string>;
  readonly length: number;
  /** Length of the list when its total was last counted. */
  readonly counted: number;
  /** Returns the items from position `from` to `to` (excluded). */
  slice(from: number, to: number): readonly Item[];
  recordOf(item: Item): T;
}

/** Answers with the requested page, after applying the active faults. */
export function answerPage<Item, T extends { readonly id: string }>(
  call: EndpointCall,
  list: PagedList<Item, T>,
): EndpointResult {
  const requested = readPage(call);
  if (!requested.ok) return requested;
  const { limit, statedLimit } = requested.value;
  const ignored = findFault(call.activeFaults, "page_ignored");
  const requestedOffset = ignored === null ? requested.value.offset : 0;
  const { recordsMax } = list.options;
  if (requestedOffset >= recordsMax) {
    const message = `only the first ${recordsMax} records can be listed; offset is ${requestedOffset}`;
    return endpointError(400, "page_too_far", message);
  }
  const missing = missingPositions(call);
  const isListed = (_: unknown, position: number) => !missing.has(position % PATTERN_LENGTH);
  const remaining = missing.size === 0 ? null : list.slice(0, list.length).filter(isListed);
  const slice = (from: number, to: number) => remaining?.slice(from, to) ?? list.slice(from, to);
  const listed = remaining?.length ?? list.length;
  // Duplicates of the first records follow the last record.
  const duplication = findFault(call.activeFaults, "duplicates");
  const duplicates = Math.min(listed, duplication?.records ?? 0);
  const offset = servedOffset(call, requestedOffset, limit, listed + duplicates);
  if (offset === null) {
    const status = call.service.options.pagesAfterEnd === "rejected" ? 400 : 404;
    return endpointError(status, "page_not_found", `there is no page ${requested.value.page}`);
  }
  const from = Math.max(offset, listed);
  const to = Math.max(from, Math.min(offset + limit, listed + duplicates));
  const repeated = slice(from - listed, to - listed).map(list.recordOf);
  const data = [
    ...slice(Math.min(offset, listed), Math.min(offset + limit, listed)).map(list.recordOf),
    ...(duplication?.newIds === true ? repeated.map((record) => ({ ...record, id: `${record.id}_copy` })) : repeated),
  ];
  const counted = missing.size === 0 ? list.counted : Array.from({ length: list.counted }).filter(isListed).length;
  const total = statedTotal(list.options, counted + duplicates, data.length);
  const page = ignored?.states === "first" ? call.service.options.firstPage : requested.value.page;
  return ok({
    status: 200,
    value: { data: corruptRecords(call, data), pagination: { page, limit: statedLimit, total } },
  });
}

/** Returns the offset of the page to serve, or null if there is no such page. The first page always exists. */
function servedOffset({ service }: EndpointCall, offset: number, limit: number, length: number): number | null {
  const { pagesAfterEnd } = service.options;
  if (offset === 0 || offset < length || pagesAfterEnd === "empty") return offset;
  return pagesAfterEnd === "last" ? Math.max(0, Math.ceil(length / limit) - 1) * limit : null;
}

function statedTotal(
  { totalCounts, totalOffBy, totalFixed }: ListOptions<string>,
  all: number,
  onPage: number,
): number {
  const isOfPage = totalCounts === "page" || (totalCounts === "list_unless_empty" && onPage === 0);
  return totalFixed ?? Math.max(0, (isOfPage ? onPage : all) + totalOffBy);
}

/** The pattern of missing positions repeats after this many. */
export const PATTERN_LENGTH = 1_000;

/** Returns which of {@link PATTERN_LENGTH} positions are missing from lists because of the active faults. */
export function missingPositions({ service, activeFaults }: EndpointCall): ReadonlySet<number> {
  const share = findFault(activeFaults, "empty_list") === null ? findFault(activeFaults, "vanished")?.missing : 1;
  if (share === undefined) return new Set();
  const { seed } = service.network;
  const positions = Array.from({ length: PATTERN_LENGTH }, (_, position) => position);
  const shuffled = positions.sort((one, other) => hash(seed, one) - hash(seed, other));
  return new Set(shuffled.slice(0, Math.round(share * PATTERN_LENGTH)));
}

/** Applies the faults to the records. Each record is corrupted in the same way as long as the fault lasts. */
function corruptRecords<T extends { readonly id: string }>(
  call: EndpointCall,
  validRecords: readonly T[],
): readonly unknown[] {
  const records = withManyLabels(call, validRecords);
  const fault = findFault(call.activeFaults, "bad_records");
  if (fault === null) return records;
  return records.map((record) => ({ ...record, ...corruptionOf(call.service.network.seed, fault.spoiled, record.id) }));
}

/** Returns the fields that the fault `bad_records` replaces in the record with this id, or null if there is none. */
export function corruptionOf(seed: Uint32, share: Share, id: string): Readonly<Record<string, unknown>> | null {
  const draw = hash(seed ^ 0xbad, hashText(id));
  return (draw % 1_000) / 1_000 >= share ? null : CORRUPTIONS[Math.floor(draw / 1_000) % CORRUPTIONS.length]!;
}

/**
 * Gives the label fields of each record one of many values. Fields that the kind of record does not have are ignored.
 */
function withManyLabels<T extends { readonly id: string }>(call: EndpointCall, records: readonly T[]): readonly T[] {
  const fault = findFault(call.activeFaults, "many_labels");
  if (fault === null) return records;
  return records.map((record) => {
    const value = hash(call.service.network.seed ^ 0x1abe1, hashText(record.id)) % fault.values;
    const labels = { country: `country_${value}`, region: `region_${value}` };
    return { ...record, ...labels, customer_id: `cust_${value}`, node_id: `node_many_${value}` };
  });
}

const CORRUPTIONS: readonly Readonly<Record<string, unknown>>[] = [
  { status: "hibernating" },
  { uptime_hours: "many", active_sessions: "12", duration_seconds: "many", bytes_sent: "12" },
  { id: undefined },
  { id: 17 },
  { name: 'we"ird\n\\na', customer_id: 'cust_we"ird\n' },
  { country: null, region: null, last_seen: null, node_id: null, started_at: null },
  { last_seen: "yesterday", started_at: "yesterday" },
  { bandwidth_gb: -1, bytes_received: -1 },
  { uptime_hours: -1, bandwidth_gb: 1e21, last_seen: "", started_at: "", duration_seconds: undefined },
  { name: "lone \ud800", version: "lone \udfff", customer_id: "cust_\ud800" },
  { name: "lone \udbff", version: "lone \udc00", customer_id: "cust_\udbff" },
];

function wholeNumber(text: string | null, absent: number): number | null {
  if (text === null) return absent;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : null;
}

const quoted = (query: URLSearchParams, name: string): string => JSON.stringify(query.get(name));

const hashText = (text: string): number => {
  let word = 0;
  for (let index = 0; index < text.length; index += 1) word = (Math.imul(word, 31) + text.charCodeAt(index)) >>> 0;
  return word;
};
