import type { DaemonClient } from "../daemon-client.ts";
import { readNodesPage } from "./node-lookup.ts";

/** Filters by location. */
interface LocationFilters {
  readonly region?: string | undefined;
  readonly country?: string | undefined;
}

/** Returns a sentence for each location that the daemon does not know, for a result without rows. */
export async function unknownLocations(
  { region, country }: LocationFilters,
  daemon: DaemonClient,
): Promise<readonly string[]> {
  if (region === undefined && country === undefined) return [];
  const response = await readNodesPage({ region, country, limit: 1 }, daemon);
  return response.ok ? (response.value.warnings ?? []) : [];
}
