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

/**
 * Returns a check of whether a node has every word of a text in its name, id or region, ignoring case, or null if the
 * text is empty. A word that is a country code matches the nodes of the country.
 */
function compileSearch(fleet: FleetModel, text: string): ((cell: Cell) => boolean) | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const { countries, texts } = searchIndex(fleet);
  const tests = words.map((word) =>
    countries.has(word)
      ? ({ country }: Cell) => country.toLowerCase() === word
      : ({ index }: Cell) => texts[index]!.includes(word),
  );
  return (cell) => tests.every((test) => test(cell));
}

/** Returns the nodes that a search finds, or null if the text is empty or there is no fleet yet. */
export function searchNodes(fleet: FleetModel | null, text: string): readonly Cell[] | null {
  const isFound = fleet && compileSearch(fleet, text);
  return fleet && isFound && fleet.cells.filter(isFound);
}

interface SearchIndex {
  /** Country codes in lower case. */
  readonly countries: ReadonlySet<string>;
  /** Searched text of each node, in lower case, by its index. */
  readonly texts: readonly string[];
}

const indexes = new WeakMap<FleetModel, SearchIndex>();

/** Returns the index of a fleet, which is built by its first search. */
function searchIndex(fleet: FleetModel): SearchIndex {
  const known = indexes.get(fleet);
  if (known !== undefined) return known;
  const built = {
    countries: new Set(fleet.cells.map(({ country }) => country.toLowerCase())),
    // No word contains a line break, so none matches across two fields.
    texts: fleet.cells.map(({ id, name, region }) => `${name}\n${id}\n${region}`.toLowerCase()),
  };
  indexes.set(fleet, built);
  return built;
}
