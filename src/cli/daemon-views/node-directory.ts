import { fail, ok, type Result } from "../../base/result.ts";
import type { NodeId } from "../../model/node.ts";
import type { Location } from "../../model/snapshot.ts";
import type { LeaderView } from "../../web/api/status-views.ts";
import { PROGRAM } from "../context.ts";
import type { DaemonClient } from "../daemon-client.ts";
import { stripControlCharacters } from "../output/text.ts";

/** The columns of `GET /api/v1/fleet` that are read. A slot whose id is "" is empty. */
interface FleetColumns {
  readonly ids: readonly NodeId[];
  readonly names: readonly string[];
  /** Index into `places`, by slot. */
  readonly place: readonly number[];
  readonly places: readonly Location[];
}

/** Every id has this prefix (spec, section 2.1). */
export const ID_PREFIX = "node_";

/** The names (null if there is none) and locations of the daemon's nodes, by id. A standby knows none. */
export type NodeDirectory = ReadonlyMap<NodeId, { readonly name: string | null; readonly location: Location }>;

/** Reads the directory of the running daemon. */
export async function readDirectory(daemon: DaemonClient): Promise<Result<NodeDirectory, string>> {
  const shape = { ids: "array", names: "array", place: "array", places: "array" } as const;
  const columns = await daemon.get<FleetColumns>("/api/v1/fleet", shape);
  if (!columns.ok) return columns;
  const { ids, names, place, places } = columns.value;
  const nodes = ids.map((id, slot) => [id, { name: names[slot] || null, location: places[place[slot]!]! }] as const);
  return ok(new Map(nodes.filter(([id]) => id !== "")));
}

/**
 * Returns the id of the node that an operator named, by its id or its name. A text with the prefix of ids may be the id
 * of a node that has left the fleet. Fails if there is no such node, or several have the name.
 */
export async function resolveNode(node: string, daemon: DaemonClient): Promise<Result<NodeId, string>> {
  const directory = await readDirectory(daemon);
  // An id is enough to hold a node while the daemon can't list its nodes.
  if (!directory.ok) return node.startsWith(ID_PREFIX) ? ok(node) : directory;
  return findNode(node, directory.value, daemon);
}

/** Like {@link resolveNode}, with a directory that was already read. */
export async function findNode(
  node: string,
  directory: NodeDirectory,
  daemon: DaemonClient,
): Promise<Result<NodeId, string>> {
  const ids = directory.has(node) ? [node] : idsNamed(node, directory);
  if (ids.length === 1) return ok(ids[0]!);
  const shown = stripControlCharacters(node);
  if (ids.length > 1) return fail(`several nodes have the name ${shown}: use one of the ids ${ids.join(", ")}`);
  if (node.startsWith(ID_PREFIX)) return ok(node);
  if (directory.size === 0) return fail(`${await emptyFleetReason(daemon)}, or name the node by its id`);
  return fail(`no node "${shown}" in the fleet: find it with ${PROGRAM} nodes --search`);
}

const idsNamed = (wanted: string, directory: NodeDirectory): readonly NodeId[] =>
  [...directory].flatMap(([id, { name }]) => (name === wanted ? [id] : []));

/** Returns why the daemon knows no nodes, and where to ask instead. */
export async function emptyFleetReason(daemon: DaemonClient): Promise<string> {
  const status = await daemon.get<{ readonly leader: LeaderView }>("/api/v1/status", { leader: "object" });
  const leader = status.ok ? status.value.leader : null;
  if (leader === null || leader.is_this) return "the daemon knows no nodes yet: try again after its first poll";
  const where = leader.url ?? leader.name;
  return `this daemon stands by and knows no nodes: ask the leader${where === null ? "" : ` at ${stripControlCharacters(where)}`}`;
}
