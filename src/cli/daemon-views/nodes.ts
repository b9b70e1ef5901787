import { equalsIgnoringCase } from "../../base/text.ts";
import type { NodesView } from "../../web/api/node-views.ts";
import { ROWS_MAX } from "../../web/api/query.ts";
import type { HeldNodeView } from "../../web/api/remediation-views.ts";
import { formatDuration, formatUptime } from "../../web/ui/page/format.ts";
import type { DaemonClient } from "../daemon-client.ts";
import { formatTable, formatTime, nodeLabel, type Paint, stripControlCharacters } from "../output/text.ts";
import { type DaemonViewOptions, viewCommand } from "./daemon-view.ts";
import { emptyFleetReason, readNodesPage, unknownLocations } from "./node-lookup.ts";

/** Filters of `nodes`. */
export interface NodesOptions extends DaemonViewOptions {
  readonly status?: string;
  readonly region?: string;
  readonly country?: string;
  /** A part of the id, the name or the IP address. */
  readonly search?: string;
  /** Maximum number of nodes. */
  readonly limit: number;
}

/** The nodes that match the filters, up to the limit, and how many match. */
interface FoundNodes {
  readonly nodes: readonly NodeRow[];
  readonly total: number;
  /** Whether a walk of the list has completed. */
  readonly complete: boolean;
  readonly warnings: readonly string[];
}

type NodeRow = NodesView["data"][number];

/** `nodes`: lists the nodes of the running daemon, in the order of their ids. */
export const runNodes = viewCommand(async (options: NodesOptions, daemon) => {
  const value = await readNodes(options, daemon);
  const notes = await notesOn(value, daemon);
  return { value, format: (paint) => formatNodes(value, paint), notes };
});

const FIRST_WALK = "the first walk of the node list has not completed yet: only the nodes read so far are known";

/** Returns why there are no nodes, or why some may be missing. */
async function notesOn({ nodes, complete, warnings }: FoundNodes, daemon: DaemonClient): Promise<readonly string[]> {
  const reason = nodes.length > 0 ? null : await emptyFleetReason(daemon);
  if (reason !== null) return [reason];
  return complete ? warnings : [...warnings, FIRST_WALK];
}

async function readNodes(options: NodesOptions, daemon: DaemonClient): Promise<FoundNodes> {
  const { status, region, country, search: q, limit } = options;
  const pageRows = Math.min(limit, ROWS_MAX);
  // A node that is added between two requests shifts the others to later pages.
  const found = new Map<string, NodeRow>();
  for (let page = 1; ; page++) {
    const read = await readNodesPage({ status, region, country, q, page, limit: pageRows }, daemon);
    const { data, warnings = [], complete, pagination } = read;
    for (const node of data) found.set(node.id!, node);
    if (found.size < limit && data.length === pageRows) continue;
    return { nodes: [...found.values()].slice(0, limit), total: pagination.total, complete, warnings };
  }
}

const TITLES = ["name", "id", "status", "country", "region", "last seen", "uptime", "sessions", "observed"];

function formatNodes({ nodes, total }: FoundNodes, paint: Paint): string {
  if (nodes.length === 0) return "no nodes\n";
  const cells = nodes.map((node) => [
    node.name ?? "-",
    node.id ?? "-",
    node.status ?? "-",
    node.country ?? "-",
    node.region ?? "-",
    node.last_seen === null ? "-" : formatTime(node.last_seen),
    node.uptime_hours === null ? "-" : formatUptime(node.uptime_hours),
    node.active_sessions === null ? "-" : String(node.active_sessions),
    node.age_seconds === null ? "-" : `${formatDuration(node.age_seconds)} ago`,
  ]);
  const rest = total > nodes.length ? `${nodes.length} of ${total} nodes: see --limit and the filters\n` : "";
  return formatTable(TITLES, cells, paint) + rest;
}

/**
 * `nodes --held`: lists the nodes that are held, as `GET /api/v1/holds` orders them, with every reason and how it ends.
 */
export const runHeldNodes = viewCommand(async (options: NodesOptions, daemon) => {
  const { region, country, search = "", limit } = options;
  const isWanted = (held: HeldNodeView) =>
    (region ?? held.region) === held.region &&
    equalsIgnoringCase(country ?? held.country, held.country) &&
    [held.node, held.name, held.ip_address ?? ""].some((text) => text.toLowerCase().includes(search.toLowerCase()));
  const held = await readHeldNodes(ROWS_MAX, daemon);
  const wanted = held.filter(isWanted);
  const [nodes, total] = [wanted.slice(0, limit), wanted.length];
  const more = total > nodes.length ? `${nodes.length} of ${total} held nodes: see --limit and the filters\n` : "";
  const format = (paint: Paint) => {
    if (held.length === 0) return "no nodes are held\n";
    if (nodes.length === 0) return "none of the held nodes matches the filters\n";
    return formatHeldNodes(nodes, more, paint);
  };
  // A daemon that knows no nodes, such as a standby, does not know which ones its policies hold.
  const reason = await emptyFleetReason(daemon);
  const unknown = total === 0 ? await unknownLocations({ region, country }, daemon) : [];
  const cut = held.length === ROWS_MAX ? [`only the first ${ROWS_MAX} held nodes were read`] : [];
  return { value: { nodes, total }, format, notes: [...(reason === null ? [] : [reason]), ...unknown, ...cut] };
});

/** Reads at most `limit` held nodes: first those that a policy would treat, the longest hold first in each group. */
export const readHeldNodes = (limit: number, daemon: DaemonClient) =>
  daemon.rows<HeldNodeView>(`/api/v1/holds?limit=${limit}`);

/** Reasons that concern a single node, and whose end may be a known time. */
const NODE_HOLDS: ReadonlySet<string> = new Set(["held", "vetoed", "ownership"]);

/**
 * Formats the reasons of a held node. If the holds that concern only this node end at a known time, they come last, with
 * the time at which the last of them ends.
 */
function reasonsText(reasons: HeldNodeView["reasons"], until: string | null): string {
  const names = reasons.map(({ reason }) => reason);
  const ofNode = names.filter((reason) => NODE_HOLDS.has(reason));
  if (until === null || ofNode.length === 0) return names.join(", ");
  const others = names.filter((reason) => !NODE_HOLDS.has(reason));
  return [...others, `${ofNode.join(" and ")} until ${formatTime(until)}`].join(", ");
}

/** Formats held nodes as a table with every reason, then `more`, and how a hold for each of the reasons ends. */
export function formatHeldNodes(held: readonly HeldNodeView[], more: string, paint: Paint): string {
  const cells = held.map(({ node, name, policy, held_seconds: seconds, reasons, until }) => [
    nodeLabel(node, name === node ? null : name),
    policy ?? "-",
    formatDuration(seconds),
    reasonsText(reasons, until),
  ]);
  const ends = new Map(held.flatMap(({ reasons }) => reasons.map(({ reason, ends: end }) => [reason, end] as const)));
  const lines = [...ends].map(([reason, end]) => `${reason} ends ${stripControlCharacters(end)}\n`);
  return formatTable(["held node", "policy", "for", "reasons"], cells, paint) + more + lines.join("");
}
