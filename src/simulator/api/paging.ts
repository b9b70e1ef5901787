import type { Share } from "../../base/percent.ts";
import { ok, type Result } from "../../base/result.ts";
import type { ListOptions } from "../../model/scenario.ts";
import { hash } from "../hash.ts";
import {
  type EndpointCall,
  type EndpointError,
  type EndpointResult,
  endpointError,
  findFault,
} from "./endpoint-context.ts";
import { createRecordFilter, PASS_ALL_FILTER, type RecordFilter } from "./record-filter.ts";

/** Which page was asked for (spec, section 2.5). */
interface PageRequest {
  readonly page: number;
  /** The limit in force, after clamping. */
  readonly limit: number;
  /** The limit that the reply states. */
  readonly statedLimit: number;
  readonly offset: number;
}

/** Reads page and limit from the query, by the service's options. */
function readPage({ service, query }: EndpointCall): Result<PageRequest, EndpointError> {
  const { firstPage, pageLimitDefault, pageLimitMax, pageLimitOver, pageLimitEcho } = service.options;
  const page = wholeNumber(query.get("page"), firstPage);
  if (page === null || page < firstPage) {
    return endpointError(
      400,
      "invalid_page",
      `page must be a whole number from ${firstPage}, not ${quoted(query, "page")}`,
    );
  }
  const asked = wholeNumber(query.get("limit"), pageLimitDefault);
  if (asked === null || asked < 1 || (asked > pageLimitMax && pageLimitOver === "reject")) {
    const message = `limit must be a whole number from 1 to ${pageLimitMax}, not ${quoted(query, "limit")}`;
    return endpointError(400, "invalid_limit", message);
  }
  const limit = Math.min(asked, pageLimitMax);
  const echo = pageLimitEcho === "effective" ? limit : asked;
  return ok({ page, limit, statedLimit: echo, offset: (page - firstPage) * limit });
}

/** A list that is paged through. */
export interface PagedList<T extends { readonly id: string }> {
  readonly options: ListOptions<string>;
  /** Records that it holds. */
  readonly length: number;
  /** Records that it held when its total was last counted. */
  readonly counted: number;
  /** The records at these positions, which ascend; there may be none. */
  read(positions: readonly number[]): readonly T[];
}

/** Answers with the page that is asked for, by the options of the list and what the faults make of it. */
export function answerPage<T extends { readonly id: string }>(call: EndpointCall, list: PagedList<T>): EndpointResult {
  const asked = readPage(call);
  if (!asked.ok) return asked;
  const { limit, statedLimit: echo } = asked.value;
  const ignored = findFault(call.activeFaults, "page_ignored");
  const offset = ignored === null ? asked.value.offset : 0;
  const { recordsMax } = list.options;
  if (offset >= recordsMax) {
    return endpointError(
      400,
      "page_too_far",
      `only the first ${recordsMax} records can be listed; offset is ${offset}`,
    );
  }
  const recordFilter = listFilter(call);
  const left = recordFilter.count(list.length);
  const twice = Math.min(left, findFault(call.activeFaults, "duplicates")?.records ?? 0);
  const from = Math.max(offset, left);
  const again = Math.max(0, Math.min(offset + limit, left + twice) - from);
  const data = [
    ...list.read(recordFilter.positions(offset, limit, list.length)),
    ...list.read(recordFilter.positions(from - left, again, list.length)),
  ];
  const total = statedTotal(list.options, recordFilter.count(list.counted) + twice, data.length);
  const page = ignored?.states === "first" ? call.service.options.firstPage : asked.value.page;
  return ok({ status: 200, value: { data: corruptRecords(call, data), pagination: { page, limit: echo, total } } });
}

function statedTotal(
  { totalCounts, totalOffBy, totalFixed }: ListOptions<string>,
  all: number,
  onPage: number,
): number {
  return totalFixed ?? Math.max(0, (totalCounts === "list" ? all : onPage) + totalOffBy);
}

/** What the faults leave of a list. */
export function listFilter({ service, activeFaults }: EndpointCall): RecordFilter {
  if (findFault(activeFaults, "empty_list") !== null) return createRecordFilter(0, 1);
  const vanished = findFault(activeFaults, "vanished");
  return vanished === null ? PASS_ALL_FILTER : createRecordFilter(service.world.seed, vanished.share);
}

/** Does to the records what the faults say; which ones are hit, and how, stays the same while a fault lasts. */
function corruptRecords<T extends { readonly id: string }>(
  call: EndpointCall,
  validRecords: readonly T[],
): readonly unknown[] {
  const records = withManyLabels(call, validRecords);
  const fault = findFault(call.activeFaults, "bad_records");
  if (fault === null) return records;
  return records.map((record) => ({ ...record, ...corruptionOf(call.service.world.seed, fault.share, record.id) }));
}

/** What the fault `bad_records` replaces in the record of this id; null: the record is not affected. */
export function corruptionOf(seed: number, share: Share, id: string): Readonly<Record<string, unknown>> | null {
  const draw = hash(seed ^ 0xbad, hashText(id));
  return (draw % 1_000) / 1_000 >= share ? null : CORRUPTIONS[Math.floor(draw / 1_000) % CORRUPTIONS.length]!;
}

/** Gives each record one of many values in each label of its own; a node takes no notice of those of a session. */
function withManyLabels<T extends { readonly id: string }>(call: EndpointCall, records: readonly T[]): readonly T[] {
  const fault = findFault(call.activeFaults, "many_labels");
  if (fault === null) return records;
  return records.map((record) => {
    const value = hash(call.service.world.seed ^ 0x1abe1, hashText(record.id)) % fault.values;
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
