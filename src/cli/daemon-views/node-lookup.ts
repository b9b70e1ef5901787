import { listNames } from "../../config/diagnostics/problem.ts";
import { ID_PREFIX, type NodeId } from "../../model/node.ts";
import type { NodesView } from "../../web/api/node-views.ts";
import { checkText, ROWS_MAX } from "../../web/api/query.ts";
import type { LeaderView, statusView } from "../../web/api/status-views.ts";
import type { NameFilters } from "../../web/api/unknown-names.ts";
import { standsBy } from "../../web/ui/page/format.ts";
import { CommandFailure, EXIT_USAGE, orFailure, PROGRAM } from "../context.ts";
import type { DaemonClient } from "../daemon-client.ts";
import { stripControlCharacters } from "../output/text.ts";
import { searchOf } from "./daemon-view.ts";

type NodesParameters = Readonly<Record<string, string | number | undefined>>;

/** Reads a page of the nodes that match `parameters`. */
export const readNodesPage = (parameters: NodesParameters, daemon: DaemonClient): Promise<NodesView> =>
  daemon.get<NodesView>(`/api/v1/nodes?${searchOf(parameters)}`, { data: "array", pagination: "object" });

/** Throws {@link CommandFailure} if a text can't be the id or name of a node. */
export function assertNodeText(node: string): void {
  const problem = checkText(node);
  if (problem !== null) throw new CommandFailure(`the id or name of the node ${problem}`, EXIT_USAGE);
}

/**
 * Returns the id of the node that an operator named, by its id or its name. A text with the prefix of ids may be the id
 * of a node that has left the fleet. Rejects with {@link CommandFailure} if there is no such node, or if several have the
 * name.
 */
export async function resolveNode(node: string, daemon: DaemonClient): Promise<NodeId> {
  assertNodeText(node);
  const found = await orFailure(readNodesPage({ node, limit: ROWS_MAX }, daemon));
  if (found instanceof CommandFailure) {
    // An id is enough to hold a node while the daemon can't list its nodes.
    if (node.startsWith(ID_PREFIX)) return node;
    throw found;
  }
  const ids = found.data.map(({ id }) => id!);
  if (ids.length === 1) return ids[0]!;
  if (ids.length > 1 && !ids.includes(node))
    throw new CommandFailure(
      stripControlCharacters(`several nodes have the name ${node}: use one of the ids ${listNames(ids)}`),
    );
  if (ids.length > 1 || node.startsWith(ID_PREFIX)) return node;
  const reason = await emptyFleetReason(daemon);
  throw new CommandFailure(
    reason === null
      ? `no node "${stripControlCharacters(node)}" in the fleet: find it with ${PROGRAM} nodes --search`
      : `${reason}; a node can still be named by its id`,
  );
}

/** Part of the response of `GET /api/v1/status`. */
interface NodesStatus {
  readonly leader?: LeaderView;
  readonly nodes?: ReturnType<typeof statusView>["nodes"];
  readonly collectors?: Pick<ReturnType<typeof statusView>["collectors"], "nodes">;
}

/**
 * If the daemon knows no nodes, returns why, and what to do. Otherwise returns null. Rejects with {@link CommandFailure}
 * if the daemon can't be asked.
 */
export async function emptyFleetReason(daemon: DaemonClient): Promise<string | null> {
  const { pagination } = await readNodesPage({ limit: 1 }, daemon);
  if (pagination.total > 0) return null;
  const { leader = null, nodes = null, collectors } = await daemon.get<NodesStatus>("/api/v1/status", {});
  if (standsBy(leader)) {
    const where = leader.url ?? leader.name;
    return `this daemon stands by and knows no nodes: ask the leader${where === null ? "" : ` at ${stripControlCharacters(where)}`}`;
  }
  if (nodes !== null) return "the service lists no nodes";
  const failure = collectors?.nodes.failure ?? null;
  if (failure === null) return "the daemon knows no nodes yet: try again after its first poll";
  const cause = stripControlCharacters(`${failure.reason}: ${failure.message}`);
  return `the daemon knows no nodes yet, because they can't be read now: ${cause}`;
}

/** Returns a warning about the region and the country if the daemon does not know them, for a result without rows. */
export async function unknownLocations(
  { region, country }: Pick<NameFilters, "region" | "country">,
  daemon: DaemonClient,
): Promise<readonly string[]> {
  if (region === undefined && country === undefined) return [];
  const response = await orFailure(readNodesPage({ region, country, limit: 1 }, daemon));
  return response instanceof CommandFailure ? [] : (response.warnings ?? []);
}
