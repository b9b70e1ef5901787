import { humanize } from "../format.ts";
import { type Cell, choosePairs, type FleetModel, pairOf } from "./fleet.ts";
import { needsAttention, REMEDIATION_STATES } from "./remediation-states.ts";

/** Criteria for the nodes to show. Null or empty means all. */
export interface NodeFilter {
  readonly status: string | null;
  /** Name of a remediation state, or `attention` for the nodes that need attention. */
  readonly remediation: string | null;
  readonly search: string;
}

/** The value of `remediation` for the nodes that need attention. */
export const ATTENTION = "attention";

/** Returns the chosen status and remediation state in words, such as `offline, held`, or "" if none is chosen. */
export function filterLabel({ status, remediation }: NodeFilter): string {
  const state = REMEDIATION_STATES.find(({ name }) => name === remediation)?.label ?? remediation;
  const words = [status && humanize(status), remediation === ATTENTION ? "needs attention" : state];
  return words.filter(Boolean).join(", ");
}

/** Returns a check of whether a node passes a filter, or null if every node does. */
export function compileFilter(fleet: FleetModel, filter: NodeFilter): ((cell: Cell) => boolean) | null {
  const found = compileSearch(fleet, filter.search);
  if (filter.status === null && filter.remediation === null) return found;
  const hasState = compileState(filter.remediation);
  const pairs = choosePairs(
    fleet,
    (status, mark) => (filter.status === null || filter.status === status) && hasState(status, mark),
  );
  return (cell) => pairs[pairOf(fleet, cell.index)]! && (found === null || found(cell));
}

function compileState(remediation: string | null): (status: string, mark: string) => boolean {
  if (remediation === null) return () => true;
  if (remediation === ATTENTION) return needsAttention;
  const marks = REMEDIATION_STATES.find(({ name }) => name === remediation)?.marks ?? [];
  return (_, mark) => marks.includes(mark);
}

/** Returns a check of whether a search finds a node, or null if the text is empty. */
function compileSearch(fleet: FleetModel, text: string): ((cell: Cell) => boolean) | null {
  const nodes = searchNodes(fleet, text);
  if (nodes === null) return null;
  const isFound = new Uint8Array(fleet.cells.length);
  for (const { index } of nodes) isFound[index] = 1;
  return ({ index }) => isFound[index] === 1;
}

/**
 * Returns the nodes that have every word of a text in their name, id or region, ignoring case, or null if the text is
 * empty or there is no fleet yet. A word that is a country code matches the nodes of the country. The latest result is
 * kept, because the lists are shown again at each change of the fleet.
 */
export function searchNodes(fleet: FleetModel | null, text: string): readonly Cell[] | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (fleet === null || words.length === 0) return null;
  const index = searchIndex(fleet);
  const key = words.join(" ");
  if (index.latest?.key !== key) index.latest = { key, nodes: findNodes(fleet, index, words) };
  return index.latest.nodes;
}

function findNodes({ cells }: FleetModel, { countries, texts }: SearchIndex, words: readonly string[]) {
  const tests = words.map((word) =>
    countries.has(word)
      ? ({ country }: Cell) => country.toLowerCase() === word
      : ({ index }: Cell) => texts[index]!.includes(word),
  );
  return cells.filter((cell) => tests.every((test) => test(cell)));
}

interface SearchIndex {
  /** Country codes in lower case. */
  readonly countries: ReadonlySet<string>;
  /** Searched text of each node, in lower case, by its index. */
  readonly texts: readonly string[];
  /** The latest search and the nodes that it found, or null if there was none. */
  latest: { readonly key: string; readonly nodes: readonly Cell[] } | null;
}

const indexes = new WeakMap<FleetModel, SearchIndex>();

/** Returns the index of a fleet, which is built by its first search. */
function searchIndex(fleet: FleetModel): SearchIndex {
  const known = indexes.get(fleet);
  if (known !== undefined) return known;
  const built: SearchIndex = {
    countries: new Set(fleet.cells.map(({ country }) => country.toLowerCase())),
    // No word contains a line break, so none matches across two fields.
    texts: fleet.cells.map(({ id, name, region }) => `${name}\n${id}\n${region}`.toLowerCase()),
    latest: null,
  };
  indexes.set(fleet, built);
  return built;
}
