import { equalsIgnoringCase } from "../../base/text.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { slotsById } from "../../policy/cel/field-readers.ts";

/** Parameters of a query that may name something that the daemon does not know. `node` is an id. */
export type NameFilters = Readonly<Partial<Record<"node" | "policy" | "region" | "country", string | undefined>>>;

/** Rows, and warnings about the query if there are any. */
export interface Rows<Row> {
  readonly data: readonly Row[];
  readonly warnings?: readonly string[];
}

/** Maximum number of names in a warning, which is enough for the policies or regions of most networks. */
const LISTED_NAMES_MAX = 20;

/** Returns a response with rows or, if there are none, with a warning for each name in the query that is unknown. */
export function withWarnings<Row>(
  data: readonly Row[],
  names: NameFilters,
  fleet: Fleet | null,
  policies: readonly string[],
): Rows<Row> {
  const warnings = data.length > 0 ? [] : unknownNames(names, fleet, policies);
  return warnings.length === 0 ? { data } : { data, warnings };
}

/**
 * A name is not reported while the daemon knows none of its kind. A node, region or country is not reported before a
 * walk of the list has completed.
 */
function unknownNames(
  { node, policy, region, country }: NameFilters,
  latest: Fleet | null,
  policies: readonly string[],
) {
  const fleet = latest === null || latest.settledAt === null ? null : latest;
  const locations = fleet?.locations ?? [];
  const regions = locations.map((location) => location.region);
  const countries = locations.map((location) => location.country);
  const warnings: string[] = [];
  if (node !== undefined && fleet !== null && fleet.count > 0 && !slotsById(fleet).has(node))
    warnings.push(`no node with the id ${JSON.stringify(node)} in the fleet`);
  if (policy !== undefined && !policies.includes(policy))
    warnings.push(...unknownName("policy", "policies", policy, policies));
  if (region !== undefined && !regions.includes(region))
    warnings.push(...unknownName("region", "regions", region, regions));
  if (country !== undefined && !countries.some((known) => equalsIgnoringCase(known, country)))
    warnings.push(...unknownName("country", "countries", country, countries));
  return warnings;
}

function unknownName(kind: string, kinds: string, name: string, known: readonly string[]): readonly string[] {
  const names = [...new Set(known)].filter((text) => text !== "").toSorted();
  if (names.length === 0) return [];
  const rest = names.length - LISTED_NAMES_MAX;
  const list = names.slice(0, LISTED_NAMES_MAX).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  return [`no ${kind} ${JSON.stringify(name)}: the known ${kinds} are ${list}`];
}
