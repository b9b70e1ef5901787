import { equalsIgnoringCase } from "../../base/text.ts";
import type { PolicyView } from "../../web/api/remediation-views.ts";
import type { DaemonClient } from "../daemon-client.ts";
import { stripControlCharacters } from "../output/text.ts";

/** Filters by names that an operator may mistype. */
interface NameFilters {
  readonly policy?: string | undefined;
  readonly region?: string | undefined;
  readonly country?: string | undefined;
}

/** Locations of nodes, as `GET /api/v1/fleet` lists them. */
interface Locations {
  readonly locations: readonly { readonly country: string; readonly region: string }[];
}

/** Enough for the policies or regions of most networks. */
const LISTED_NAMES_MAX = 20;

/**
 * Returns a sentence for each filter whose name the daemon does not know, for a result without rows. A name is not
 * reported while the daemon knows none of its kind.
 */
export async function unknownNames(
  { policy, region, country }: NameFilters,
  daemon: DaemonClient,
): Promise<readonly string[]> {
  const notes: string[] = [];
  if (policy !== undefined) {
    const policies = await daemon.rows<PolicyView>("/api/v1/policies");
    const names = policies.ok ? policies.value.map(({ name }) => name) : [];
    if (!names.includes(policy)) notes.push(...unknownNote("policy", "policies", policy, names));
  }
  if (region === undefined && country === undefined) return notes;
  const fleet = await daemon.get<Locations>("/api/v1/fleet", { locations: "array" });
  const locations = fleet.ok ? fleet.value.locations : [];
  const regions = locations.map((location) => location.region);
  const countries = locations.map((location) => location.country);
  if (region !== undefined && !regions.includes(region)) {
    notes.push(...unknownNote("region", "regions", region, regions));
  }
  if (country !== undefined && !countries.some((known) => equalsIgnoringCase(known, country))) {
    notes.push(...unknownNote("country", "countries", country, countries));
  }
  return notes;
}

function unknownNote(kind: string, kinds: string, name: string, known: readonly string[]): readonly string[] {
  const names = [...new Set(known)].filter((text) => text !== "").toSorted();
  if (names.length === 0) return [];
  const rest = names.length - LISTED_NAMES_MAX;
  const list = names.slice(0, LISTED_NAMES_MAX).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  return [stripControlCharacters(`no ${kind} "${name}": the known ${kinds} are ${list}`)];
}
