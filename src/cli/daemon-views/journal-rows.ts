import { DAY_MS, type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { equalsIgnoringCase } from "../../base/text.ts";
import type { NodeId } from "../../model/node.ts";
import { isoAt } from "../../model/time.ts";
import { ROWS_MAX } from "../../web/api/query.ts";
import type { remediationStatusView } from "../../web/api/remediation-views.ts";
import type { ActionView, DecisionView, OperatorCommandView, WithNode } from "../../web/api/row-views.ts";
import type { Rows } from "../../web/api/unknown-names.ts";
import { requestLabel } from "../../web/ui/page/activity/activity-lines.ts";
import { countNoun, withNodeName } from "../../web/ui/page/format.ts";
import { type PastTime, timeOfOption } from "../arguments/past-time.ts";
import { CommandFailure } from "../context.ts";
import type { DaemonClient } from "../daemon-client.ts";
import { stateText } from "../output/node-explanation-text.ts";
import { formatTable, formatTime, nodeLabel, type Paint } from "../output/text.ts";
import { type DaemonViewOptions, searchOf, viewCommand } from "./daemon-view.ts";
import { emptyFleetReason, resolveNode, unknownLocations } from "./node-lookup.ts";

/** Filters of `decisions`, `actions` and `orders`. */
interface JournalRowOptions extends DaemonViewOptions {
  /** Id or name. */
  readonly node?: string;
  readonly policy?: string;
  readonly region?: string;
  readonly country?: string;
  readonly since?: PastTime;
  /** Maximum number of rows. */
  readonly limit: number;
}

/** A row of any view. */
type JournalRow = WithNode<{ readonly node: NodeId | null }>;

/** Returns a command that lists the latest rows of a view that match the options, newest first. */
const journalCommand = <Row extends JournalRow>(view: JournalView<Row>) =>
  viewCommand(async (options: JournalRowOptions, daemon) => {
    const { rows, notes } = await searchRows(view, options, daemon);
    const format = (paint: Paint) =>
      rows.length === 0 ? `no ${view.noun}s\n` : formatTable(view.titles, rows.map(view.cellsOf), paint);
    return { value: rows, format, notes };
  });

/** Maximum number of requests. A search for rows that are rare may need many. */
const REQUESTS_MAX = 20;

/**
 * Returns the rows that match, up to the limit and by the time that is shown, and notes about rows that may be missing.
 */
async function searchRows<Row extends JournalRow>(
  view: JournalView<Row>,
  options: JournalRowOptions,
  daemon: DaemonClient,
): Promise<{ readonly rows: readonly Row[]; readonly notes: readonly string[] }> {
  const { node: named, policy, region, country, limit } = options;
  const { noun, sortedBy, shownTime = sortedBy, keyOf = JSON.stringify } = view;
  const shownLaterMs = (await view.shownLaterMs?.(daemon)) ?? 0;
  const isFiltered = region !== undefined || country !== undefined;
  const node = named === undefined ? null : await resolveNode(named, daemon);
  const since = options.since === undefined ? undefined : timeOfOption("--since", options.since, await daemon.now());
  const isInLocation = (row: Row) =>
    (region ?? row.region) === row.region && equalsIgnoringCase(country ?? row.country, row.country);
  const sinceText = since === undefined ? "" : isoAt(since);
  const oldest = since === undefined ? "" : isoAt(Math.max(0, since - shownLaterMs));
  // Pages overlap, because several rows may have the time at which a page ends.
  const found = new Map<string, Row>();
  const newest = () => [...found.values()].sort((a, b) => shownTime(b).localeCompare(shownTime(a))).slice(0, limit);
  const unlocated = new Set<string>();
  // Rows are read by `sortedBy`, so one that is shown with a late time may follow many with earlier ones.
  const isScattered = isFiltered || shownLaterMs > 0;
  const pageRows = isScattered ? ROWS_MAX : limit;
  let until: string | null = null;
  let isCut = false;
  const warnings: string[] = [];
  for (let request = 1; request <= REQUESTS_MAX; request++) {
    const search: string = searchOf({ node, policy, until, limit: pageRows });
    const page = await daemon.get<Rows<Row>>(`/api/v1/${view.route}?${search}`, { data: "array" });
    const { data: rows } = page;
    if (request === 1) warnings.push(...(page.warnings ?? []));
    for (const row of rows) {
      if (shownTime(row) < sinceText) continue;
      if (isFiltered && row.region === null) unlocated.add(JSON.stringify(row));
      else if (isInLocation(row)) found.set(keyOf(row), row);
    }
    const last = rows.length < pageRows ? null : sortedBy(rows.at(-1)!);
    if (last === null || last < oldest) break;
    const lastShown = newest()[limit - 1];
    if (lastShown !== undefined && last <= isoAt(Date.parse(shownTime(lastShown)) - shownLaterMs)) break;
    // More rows may have the same time than fit on a page. Those beyond the page can't be read.
    const isStuck: boolean = last === until;
    isCut ||= isStuck || request === REQUESTS_MAX;
    until = isStuck ? isoAt(Date.parse(last) - 1) : last;
  }
  const reason = found.size === 0 && unlocated.size > 0 ? await emptyFleetReason(daemon) : null;
  if (reason !== null) throw new CommandFailure(reason);
  const rows = newest();
  const notes = [
    ...warnings,
    ...(rows.length === 0 ? await unknownLocations(options, daemon) : []),
    ...(isCut ? [`not all rows were searched: there may be more ${noun}s; use --since, --node or --policy`] : []),
    ...(unlocated.size === 0
      ? []
      : [`${countNoun(unlocated.size, noun)} with an unknown location left out: nodes that left the fleet have none`]),
  ];
  return { rows, notes };
}

/** A command that lists rows of the journal, newest first. */
interface JournalView<Row extends JournalRow> {
  readonly route: "decisions" | "actions" | "orders";
  /** What a row is called. */
  readonly noun: string;
  /** The time by which the journal sorts rows, in ISO 8601. */
  sortedBy(row: Row): string;
  /** The time that is shown, in ISO 8601. Absent if it is the same. */
  shownTime?(row: Row): string;
  /** Returns by how much the shown time of a row may be later than `sortedBy`. Absent if it is the same. */
  shownLaterMs?(daemon: DaemonClient): Promise<DurationMs>;
  /** Identifies a row that may change between two requests. Absent if rows don't change. */
  keyOf?(row: Row): string;
  readonly titles: readonly string[];
  /** Returns the cells of a row, in the order of the titles. */
  cellsOf(row: Row): readonly string[];
}

/** `decisions`. */
export const runDecisions = journalCommand<WithNode<DecisionView>>({
  route: "decisions",
  noun: "decision",
  sortedBy: ({ at }) => at,
  titles: ["time", "node", "policy", "step", "mode", "verdict", "reasons"],
  cellsOf: ({ at, node, name, policy, step, mode, verdict, blockers }) => [
    formatTime(at),
    nodeLabel(node, name),
    policy,
    String(step + 1),
    mode,
    verdict,
    blockers.map(({ reason }) => reason).join(", "),
  ],
});

/** Part of the response of `GET /api/v1/status`. */
interface RemediationPart {
  readonly remediation: Partial<ReturnType<typeof remediationStatusView>>;
}

/** Is assumed of a daemon of an earlier version, which does not state the time. */
const APPROVAL_TTL_SECONDS_MAX = (30 * DAY_MS) / SECOND_MS;

/** `actions`. */
export const runActions = journalCommand<WithNode<ActionView>>({
  route: "actions",
  noun: "action",
  sortedBy: (row) => row.created_at,
  shownTime: (row) => row.sent_at ?? row.created_at,
  // An action that needs approval is created when it is requested. The request and the approval may each last this long.
  async shownLaterMs(daemon) {
    const { remediation } = await daemon.get<RemediationPart>("/api/v1/status", { remediation: "object" });
    const { approval_ttl_seconds: ttlSeconds = APPROVAL_TTL_SECONDS_MAX } = remediation;
    return 2 * ttlSeconds * SECOND_MS;
  },
  keyOf: ({ id }) => id,
  titles: ["time", "id", "node", "region", "policy", "step", "action", "state", "detail"],
  cellsOf: (row) => [
    formatTime(row.sent_at ?? row.created_at),
    row.id,
    nodeLabel(row.node, row.name),
    row.region,
    row.policy,
    String(row.step + 1),
    requestLabel(row.request),
    stateText(row),
    withNodeName(row.detail ?? "", row.node, row.name),
  ],
});

/** `orders`. */
export const runOrders = journalCommand<WithNode<OperatorCommandView>>({
  route: "orders",
  noun: "operator command",
  sortedBy: ({ at }) => at,
  titles: ["time", "command", "operator", "node", "result"],
  cellsOf: ({ at, command, operator, node, name, detail }) => [
    formatTime(at),
    command,
    operator ?? "-",
    node === null ? "-" : nodeLabel(node, name),
    node === null ? detail : withNodeName(detail, node, name),
  ],
});
