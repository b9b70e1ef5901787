import { SECOND_MS } from "../../base/duration.ts";
import { ok } from "../../base/result.ts";
import { ROWS_MAX } from "../../web/api/query.ts";
import type { HeldNodeView } from "../../web/api/remediation-views.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { DaemonClient } from "../daemon-api/client.ts";
import type { Paint } from "../output/color.ts";
import { formatLength, formatTable, formatTime, nodeLabel, stripControlCharacters } from "../output/text.ts";
import { showView } from "./daemon-view.ts";
import type { NodesOptions } from "./nodes.ts";

/** The held nodes that match the filters, up to the limit, and how many match. */
interface FoundHeldNodes {
  readonly nodes: readonly HeldNodeView[];
  readonly total: number;
}

/**
 * `nodes --held`: lists the nodes that are held, as `GET /api/v1/holds` orders them, with every reason and how it ends.
 */
export function runHeldNodes(options: NodesOptions, context: CommandContext): Promise<ExitCode> {
  const { region, country, search = "", limit } = options;
  let heldCount = 0;
  const isWanted = (held: HeldNodeView) =>
    (region ?? held.region) === held.region &&
    (country ?? held.country) === held.country &&
    [held.node, held.name, held.ip_address ?? ""].some((text) => text.toLowerCase().includes(search.toLowerCase()));
  const daemon = new DaemonClient(options, context);
  const read = async () => {
    const held = await readHeldNodes(ROWS_MAX, daemon);
    if (!held.ok) return held;
    heldCount = held.value.length;
    const wanted = held.value.filter(isWanted);
    return ok({ nodes: wanted.slice(0, limit), total: wanted.length });
  };
  const format = ({ nodes, total }: FoundHeldNodes, paint: Paint) => {
    const more = total > nodes.length ? `${nodes.length} of ${total} held nodes: see --limit and the filters\n` : "";
    if (heldCount === 0) return "no nodes are held\n";
    if (nodes.length === 0) return "none of the held nodes matches the filters\n";
    return formatHeldNodes(nodes, more, paint);
  };
  const notes = () => (heldCount === ROWS_MAX ? [`only the first ${ROWS_MAX} held nodes were read`] : []);
  return showView({ read, format, notes }, options, context);
}

/** Reads at most `limit` held nodes: first those that a policy would treat, the longest hold first in each group. */
export const readHeldNodes = (limit: number, daemon: DaemonClient) =>
  daemon.rows<HeldNodeView>(`/api/v1/holds?limit=${limit}`);

/** Reasons that concern a single node, and whose end may be known. */
const NODE_HOLDS: ReadonlySet<string> = new Set(["held", "vetoed", "ownership"]);

/**
 * Formats held nodes as a table with every reason, and how a hold for each of the reasons ends. `more`: follows the
 * table.
 */
export function formatHeldNodes(held: readonly HeldNodeView[], more: string, paint: Paint): string {
  const cells = held.map(({ node, name, policy, held_seconds: seconds, reasons, until }) => [
    nodeLabel(node, name === node ? null : name),
    policy ?? "-",
    formatLength(seconds * SECOND_MS),
    reasons
      .map(({ reason }) => (until !== null && NODE_HOLDS.has(reason) ? `${reason} until ${formatTime(until)}` : reason))
      .join(", "),
  ]);
  const ends = new Map(held.flatMap(({ reasons }) => reasons.map(({ reason, ends: end }) => [reason, end] as const)));
  const lines = [...ends].map(([reason, end]) => `${reason} ends ${stripControlCharacters(end)}\n`);
  return formatTable(["held node", "policy", "for", "reasons"], cells, paint) + more + lines.join("");
}
