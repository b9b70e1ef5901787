import type { PageQuery } from "../../../src/api-client/endpoints.ts";
import type { ApiError } from "../../../src/api-client/errors.ts";
import { createListBehavior } from "../../../src/api-client/pagination/list-behavior.ts";
import { walkList } from "../../../src/api-client/pagination/list-walk.ts";
import { fail, ok } from "../../../src/base/result.ts";

/** A list as a service shows it. */
export interface SimulatedList {
  readonly total: number;
  readonly clamp?: number;
  readonly echo?: "effective" | "requested";
  readonly reject?: number;
  readonly first?: 0 | 1;
  /** Whether page 0 shows what page 1 shows. */
  readonly zeroIsOne?: boolean;
  /** Records that the total counts and no page shows. */
  readonly missing?: number;
  /** Total that the list states, if it is wrong. */
  readonly stated?: number | ((asked: number) => number);
  /** Total that a page without records states, such as 0 if it is a count in the query of the page. */
  readonly emptyTotal?: number | undefined;
  /** Whether that page shows nothing. */
  readonly empty?: (page: number) => boolean;
  /** Number of records by which every page is shorter than requested. The next page continues where it ended. */
  readonly shorter?: number;
  /** Number of the last page, which every page after it shows as well. */
  readonly last?: number;
  /** Whether every page shows the first one. */
  readonly ignoresPage?: () => boolean;
  /** Records of the first page answered, where it is shorter than the others. */
  readonly shortFirst?: number;
  readonly fails?: (page: number, limit: number) => ApiError["kind"] | null;
  /** Records that the list holds when a page is asked for. */
  readonly records?: (asked: number) => number[];
}

const paginationOf = ({ stated, total }: SimulatedList, asked: number): number =>
  typeof stated === "function" ? stated(asked) : (stated ?? total);

/** Adds the records of a page to those seen. Returns the number of records, and of those that are new. */
export function addTo(seen: Set<unknown>, records: readonly unknown[]) {
  const before = seen.size;
  for (const record of records) seen.add(record);
  return { length: records.length, fresh: seen.size - before };
}

/** A list to be walked, and what was asked for and seen. */
export function walkOf(list: SimulatedList, limit = 1_000) {
  const asked: PageQuery[] = [];
  const seen = new Set<unknown>();
  const behavior = createListBehavior(limit);
  const walk = () => {
    seen.clear();
    return walkList(
      {
        behavior,
        inFlight: () => 3,
        async read(query) {
          asked.push(query);
          const kind =
            list.fails?.(query.page, query.limit) ?? (query.limit > (list.reject ?? Infinity) ? "client_error" : null);
          if (kind !== null) return fail({ kind, message: "as the test says" });
          const size = Math.min(query.limit, list.clamp ?? Infinity);
          const records = list.records?.(asked.length) ?? Array.from({ length: list.total }, (_, index) => index);
          const shown = list.ignoresPage?.() === true ? (list.first ?? 1) : query.page;
          const number = Math.min(list.zeroIsOne ? Math.max(1, shown) : shown, list.last ?? Infinity);
          const begin = (number - (list.first ?? 1)) * (size - (list.shorter ?? 0));
          const end = Math.min(
            begin + (asked.length === 1 ? (list.shortFirst ?? size) : size) - (list.shorter ?? 0),
            list.total - (list.missing ?? 0),
          );
          const page = begin < 0 || list.empty?.(query.page) === true ? [] : records.slice(begin, end);
          const echo = list.echo === "requested" ? query.limit : size;
          const emptyTotal = page.length === 0 ? list.emptyTotal : undefined;
          const total = emptyTotal ?? paginationOf(list, asked.length);
          return ok({ ...addTo(seen, page), limit: echo, total, at: 0 });
        },
      },
      new AbortController().signal,
    );
  };
  return { walk, asked, seen, behavior };
}
