import { ok, type Result } from "../../base/result.ts";
import type { NodeId } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { isoAt } from "../../web/api/notation.ts";
import { ROWS_MAX } from "../../web/api/query.ts";
import type { CommandContext } from "../context.ts";
import { isRowList } from "../daemon-api/client.ts";
import { type DaemonViewOptions, readRoute, searchOf } from "./daemon-view.ts";
import { type NodeDirectory, readDirectory, resolveNode } from "./node-directory.ts";

/** Filters of `decisions` and `actions`. */
export interface JournalRowOptions extends DaemonViewOptions {
  /** Id or name. */
  readonly node?: string;
  readonly policy?: string;
  /** Where the node is now. */
  readonly region?: string;
  readonly country?: string;
  readonly since?: EpochMs;
  /** Maximum number of rows. */
  readonly limit: number;
}

/** A row with the name of its node; null: the node has none, or is not in the fleet. */
export type Named<Row> = Row & { readonly name: string | null };

/** Which rows are read. */
interface RowSource<Row> {
  readonly route: "decisions" | "actions";
  /** The time by which rows are sorted, in ISO 8601. */
  timeOf(row: Row): string;
}

/** Rows of other regions are skipped, up to this many requests of {@link ROWS_MAX} rows. */
const REQUESTS_MAX = 20;

/** Returns a function that reads the latest rows that match the options, newest first. */
export function rowReader<Row extends { readonly node: NodeId }>(
  source: RowSource<Row>,
  options: JournalRowOptions,
  context: CommandContext,
): () => Promise<Result<readonly Named<Row>[], string>> {
  const { region, country, since, limit } = options;
  const isFiltered = region !== undefined || country !== undefined;
  const sinceText = since === undefined ? "" : isoAt(since);

  // Read again only for a node that is not in it: it is large, and a watched view is read every two seconds.
  let known: NodeDirectory | null = null;

  return async () => {
    const directory = known === null ? await readDirectory(options, context) : ok(known);
    if (!directory.ok) return directory;
    const node = options.node === undefined ? ok(null) : await resolveNode(options.node, options, context);
    if (!node.ok) return node;
    const isWanted = (row: Row): boolean => {
      if (source.timeOf(row) < sinceText) return false;
      const location = directory.value.locationOf(row.node);
      return (region ?? location?.region) === location?.region && (country ?? location?.country) === location?.country;
    };
    // Pages overlap, because several rows may have the time at which a page ends.
    const found = new Map<string, Row>();
    const pageRows = isFiltered ? ROWS_MAX : limit;
    let until: string | null = null;
    for (let request = 0; request < REQUESTS_MAX && found.size < limit; request++) {
      const search: string = searchOf({ node: node.value, policy: options.policy, until, limit: pageRows });
      const page = await readRoute(`/api/v1/${source.route}?${search}`, isRowList<Row>, options, context);
      if (!page.ok) return page;
      const rows = page.value.data;
      for (const row of rows) if (isWanted(row)) found.set(JSON.stringify(row), row);
      const last = rows.length < pageRows ? null : source.timeOf(rows.at(-1)!);
      if (last === null || last < sinceText || last === until) break;
      until = last;
    }
    known = [...found.values()].every(({ node: id }) => directory.value.has(id)) ? directory.value : null;
    const named = [...found.values()].map((row) => ({ ...row, name: directory.value.nameOf(row.node) }));
    return ok(named.slice(0, limit));
  };
}
