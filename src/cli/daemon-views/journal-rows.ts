import { fail, ok, type Result } from "../../base/result.ts";
import type { NodeId } from "../../model/node.ts";
import type { Location } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import { isoAt } from "../../web/api/notation.ts";
import { ROWS_MAX } from "../../web/api/query.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { isRowList } from "../daemon-api/client.ts";
import { createPaint } from "../output/color.ts";
import { formatTable } from "../output/text.ts";
import { type DaemonViewOptions, readRoute, searchOf, showView } from "./daemon-view.ts";
import type { JournalView, Named } from "./journal-views.ts";
import { emptyFleetReason, findNode, type NodeDirectory, readDirectory } from "./node-directory.ts";

/** Filters of `decisions`, `actions` and `orders`. */
export interface JournalRowOptions extends DaemonViewOptions {
  /** Id or name. */
  readonly node?: string;
  readonly policy?: string;
  readonly region?: string;
  readonly country?: string;
  readonly since?: EpochMs;
  /** Maximum number of rows. */
  readonly limit: number;
}

/** `decisions`, `actions` and `orders`: lists the latest rows of a view that match the options, newest first. */
export function runJournalView<Row extends { readonly node: NodeId | null }>(
  view: JournalView<Row>,
  options: JournalRowOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const paint = createPaint(context.out, context.env);
  const search = new JournalSearch(view, options, context);
  const format = (rows: readonly Named<Row>[]) =>
    rows.length === 0 ? `no ${view.route}\n` : formatTable(view.titles, rows.map(view.cellsOf), paint);
  return showView({ read: () => search.read(), format, notes: () => search.notes() }, options, context);
}

/** Rows that do not match are skipped, up to this many requests. */
const REQUESTS_MAX = 20;

/** Reads the rows of a view each time it is shown. */
class JournalSearch<Row extends { readonly node: NodeId | null }> {
  readonly #view: JournalView<Row>;
  readonly #options: JournalRowOptions;
  readonly #context: CommandContext;
  /** Kept while it has every node of the rows: it is large, and a watched view is read every two seconds. */
  #directory: NodeDirectory | null = null;
  /** Nodes of the rows that are not in the directory, so that it is not read again for them. */
  #unknown: ReadonlySet<NodeId> = new Set();
  #isCut = false;
  #unlocated = 0;

  constructor(view: JournalView<Row>, options: JournalRowOptions, context: CommandContext) {
    this.#view = view;
    this.#options = options;
    this.#context = context;
  }

  async read(): Promise<Result<readonly Named<Row>[], string>> {
    const isReadAgain = this.#directory === null;
    const read = this.#directory === null ? await readDirectory(this.#options, this.#context) : ok(this.#directory);
    if (!read.ok) return read;
    const directory = read.value;
    const rows = await this.#search(directory);
    if (!rows.ok) return rows;
    const unknown = rows.value.flatMap(({ node }) => (node === null || directory.has(node) ? [] : [node]));
    if (isReadAgain) this.#unknown = new Set(unknown);
    this.#directory = unknown.every((node) => this.#unknown.has(node)) ? directory : null;
    return ok(rows.value.map((row) => ({ ...row, name: row.node && directory.nameOf(row.node) })));
  }

  /** Returns what the rows that were last read may lack. */
  notes(): readonly string[] {
    const { route } = this.#view;
    const count = countNoun(this.#unlocated, route.slice(0, -1));
    return [
      ...(this.#isCut
        ? [`not all rows were searched: there may be more ${route}; use --since, --node or --policy`]
        : []),
      ...(this.#unlocated === 0
        ? []
        : [`${count} with an unknown location left out: the node is no longer in the fleet`]),
    ];
  }

  async #search(directory: NodeDirectory): Promise<Result<readonly Row[], string>> {
    const view = this.#view;
    const { node: named, policy, region, country, since, limit } = this.#options;
    const isFiltered = region !== undefined || country !== undefined;
    if (isFiltered && view.isLocatedByDirectory && directory.isEmpty) {
      return fail(await emptyFleetReason(this.#options, this.#context));
    }
    const node = named === undefined ? ok(null) : await findNode(named, directory, this.#options, this.#context);
    if (!node.ok) return node;
    const isThere = (at: Location | null) =>
      (region ?? at?.region) === at?.region && (country ?? at?.country) === at?.country;
    const sinceText = since === undefined ? "" : isoAt(since);
    const oldest = since === undefined ? "" : isoAt(Math.max(0, since - view.shownLaterMs));
    // Pages overlap, because several rows may have the time at which a page ends.
    const found = new Map<string, Row>();
    const unlocated = new Set<string>();
    const isScattered = isFiltered || (since !== undefined && view.shownLaterMs > 0);
    const pageRows = isScattered ? ROWS_MAX : limit;
    let until: string | null = null;
    this.#isCut = false;
    for (let request = 1; found.size < limit; request++) {
      const search: string = searchOf({ node: node.value, policy, until, limit: pageRows });
      const page = await readRoute(`/api/v1/${view.route}?${search}`, isRowList<Row>, this.#options, this.#context);
      if (!page.ok) return page;
      const rows = page.value.data;
      for (const row of rows) {
        if (view.shownTime(row) < sinceText) continue;
        const location = view.locationOf(row, directory);
        if (isFiltered && location === null) unlocated.add(JSON.stringify(row));
        else if (isThere(location)) found.set(JSON.stringify(row), row);
      }
      const last = rows.length < pageRows ? null : view.sortedBy(rows.at(-1)!);
      if (last === null || last < oldest) break;
      // More rows may have the same time than fit on a page. Those beyond the page can't be read.
      const isStuck: boolean = last === until;
      this.#isCut ||= isStuck || request === REQUESTS_MAX;
      if (request === REQUESTS_MAX) break;
      until = isStuck ? isoAt(Date.parse(last) - 1) : last;
    }
    this.#unlocated = unlocated.size;
    return ok([...found.values()].slice(0, limit));
  }
}
