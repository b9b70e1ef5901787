import { fail, ok, type Result } from "../../base/result.ts";
import type { NodeId } from "../../model/node.ts";
import type { Location } from "../../model/snapshot.ts";
import type { CommandContext } from "../context.ts";
import type { DaemonConnectionOptions, JsonObject } from "../daemon-api/client.ts";
import { stripControlCharacters } from "../output/text.ts";
import { readRoute } from "./daemon-view.ts";

/** The columns of `GET /api/v1/fleet` that are read. A slot whose id is "" is empty. */
interface FleetColumns {
  readonly ids: readonly NodeId[];
  readonly names: readonly string[];
  /** Indexes of `places`. */
  readonly place: readonly number[];
  readonly places: readonly Location[];
}

/** Every id has this prefix (spec, section 2.1). */
const ID_PREFIX = "node_";

/** The names and locations of the daemon's nodes. A standby knows none. */
export class NodeDirectory {
  readonly #columns: FleetColumns;
  readonly #slots: ReadonlyMap<NodeId, number>;

  constructor(columns: FleetColumns) {
    this.#columns = columns;
    this.#slots = new Map(columns.ids.map((id, slot) => [id, slot]));
  }

  has(id: NodeId): boolean {
    return this.#slots.has(id);
  }

  /** Returns the name of a node; null: it has none, or is not in the fleet. */
  nameOf(id: NodeId): string | null {
    const slot = this.#slots.get(id);
    return slot === undefined ? null : this.#columns.names[slot] || null;
  }

  /** Returns the country and region of a node; null: it is not in the fleet. */
  locationOf(id: NodeId): Location | null {
    const slot = this.#slots.get(id);
    return slot === undefined ? null : (this.#columns.places[this.#columns.place[slot]!] ?? null);
  }

  /** Returns the ids of the nodes with this name. */
  idsOf(name: string): readonly NodeId[] {
    const { ids, names } = this.#columns;
    return ids.filter((id, slot) => id !== "" && names[slot] === name);
  }
}

/** Reads the directory of the running daemon. */
export async function readDirectory(
  options: DaemonConnectionOptions,
  context: CommandContext,
): Promise<Result<NodeDirectory, string>> {
  const columns = await readRoute("/api/v1/fleet", isFleet, options, context);
  return columns.ok ? ok(new NodeDirectory(columns.value)) : columns;
}

const isFleet = (response: JsonObject): response is JsonObject & FleetColumns =>
  ["ids", "names", "place", "places"].every((key) => Array.isArray(response[key]));

/**
 * Returns the id of the node that an operator named, by its id or its name. A text that is neither is returned as it is: the node may
 * have left the fleet. Fails if several nodes have the name.
 */
export async function resolveNode(
  node: string,
  options: DaemonConnectionOptions,
  context: CommandContext,
): Promise<Result<NodeId, string>> {
  if (node.startsWith(ID_PREFIX)) return ok(node);
  const directory = await readDirectory(options, context);
  if (!directory.ok) return directory;
  const ids = directory.value.has(node) ? [node] : directory.value.idsOf(node);
  if (ids.length <= 1) return ok(ids[0] ?? node);
  return fail(`several nodes have the name ${stripControlCharacters(node)}: use one of the ids ${ids.join(", ")}`);
}

/** Returns the name of a node with its id; without a name the id alone. */
export const nodeLabel = (id: NodeId, name: string | null): string => (name === null ? id : `${name} (${id})`);
