import { SECOND_MS } from "../../base/duration.ts";
import { ok, type Result } from "../../base/result.ts";
import type { NodesView } from "../../web/api/node-views.ts";
import { ROWS_MAX } from "../../web/api/query.ts";
import { formatUptime } from "../../web/ui/page/format.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { DaemonClient } from "../daemon-api/client.ts";
import type { Paint } from "../output/color.ts";
import { formatLength, formatTable, formatTime } from "../output/text.ts";
import { type DaemonViewOptions, searchOf, showView } from "./daemon-view.ts";

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
  readonly nodes: NodesView["data"];
  readonly total: number;
}

/** `nodes`: lists the nodes of the running daemon, in the order of their ids. */
export function runNodes(options: NodesOptions, context: CommandContext): Promise<ExitCode> {
  const daemon = new DaemonClient(options, context);
  return showView({ read: () => readNodes(options, daemon), format: formatNodes }, options, context);
}

async function readNodes(options: NodesOptions, daemon: DaemonClient): Promise<Result<FoundNodes, string>> {
  const { status, region, country, search: q, limit } = options;
  const pageRows = Math.min(limit, ROWS_MAX);
  const nodes: NodesView["data"] = [];
  for (let page = 1; ; page++) {
    const search = searchOf({ status, region, country, q, page, limit: pageRows });
    const read = await daemon.get<NodesView>(`/api/v1/nodes?${search}`, { data: "array", pagination: "object" });
    if (!read.ok) return read;
    const { data, pagination } = read.value;
    nodes.push(...data.slice(0, limit - nodes.length));
    if (nodes.length >= limit || data.length < pageRows) return ok({ nodes, total: pagination.total });
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
    node.age_seconds === null ? "-" : `${formatLength(node.age_seconds * SECOND_MS)} ago`,
  ]);
  const rest = total > nodes.length ? `${nodes.length} of ${total} nodes: see --limit and the filters\n` : "";
  return formatTable(TITLES, cells, paint) + rest;
}
