import type { AggregateFamily, NodeFamily, RenderInput, Visibility } from "../families/family.ts";
import { NETWORK_FAMILIES } from "../families/network-families.ts";
import { CHUNK_LINES_MAX } from "./chunk.ts";

/** The families that are exported. */
interface FamilySelection {
  readonly families: readonly (NodeFamily | AggregateFamily)[];
  /** Names of the families dropped because of `export.series_max`. */
  readonly dropped: readonly string[];
}

/**
 * Selects every family that is not denied, and drops the largest ones while the total exceeds `seriesMax`. `knownCount`
 * returns the number of samples of a family, or null if they must be counted. Yields in between.
 */
export function* selectFamilies(
  input: RenderInput,
  visibility: Visibility,
  knownCount: (family: NodeFamily) => number | null,
): Generator<void, FamilySelection> {
  const { deny, seriesMax } = input.options;
  const families = NETWORK_FAMILIES.filter(({ name }) => !deny.has(name));
  const nodes = { fleet: input.snapshot.fleet.count, session_nodes: input.snapshot.sessions?.nodes.slots ?? 0 };
  const sampleCountMax = families.reduce(
    (sum, family) =>
      sum + ("fill" in family ? nodes[family.nodeSource] * linesPerNode(family) : family.maxSamples(input)),
    0,
  );
  // Counting takes a while, and is only needed if the limit may be exceeded.
  if (sampleCountMax <= seriesMax) return { families, dropped: [] };

  const sampleCounts = new Map<NodeFamily | AggregateFamily, number>();
  for (const family of families) {
    sampleCounts.set(
      family,
      "fill" in family
        ? (knownCount(family) ?? (yield* countNodeSamples(family, input, visibility)))
        : countSamples(family, input),
    );
    yield;
  }
  let total = [...sampleCounts.values()].reduce((sum, count) => sum + count, 0);
  const dropped: string[] = [];
  for (const [family, count] of [...sampleCounts].sort(([, a], [, b]) => b - a)) {
    if (total <= seriesMax) break;
    total -= count;
    sampleCounts.delete(family);
    dropped.push(family.name);
  }
  return { families: [...sampleCounts.keys()], dropped };
}

/** Returns the number of lines per node. */
export const linesPerNode = ({ splitBy }: NodeFamily): number => splitBy?.values.length ?? 1;

function* countNodeSamples(family: NodeFamily, input: RenderInput, visibility: Visibility): Generator<void, number> {
  const slots = (family.nodeSource === "fleet" ? visibility.listed : visibility.sessions).length;
  const perNode = linesPerNode(family);
  const nodes = Math.floor(CHUNK_LINES_MAX / perNode);
  const values = new Float64Array(nodes * perNode);
  let count = 0;
  for (let start = 0; start < slots; start += nodes) {
    const end = Math.min(slots, start + nodes);
    family.fill(input, visibility, start, end, values);
    for (let line = 0; line < (end - start) * perNode; line++) if (!Number.isNaN(values[line])) count++;
    yield;
  }
  return count;
}

function countSamples(family: AggregateFamily, input: RenderInput): number {
  let count = 0;
  for (const { value } of family.samples(input)) if (!Number.isNaN(value)) count++;
  return count;
}
