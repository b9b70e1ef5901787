import type { NameFilters } from "../../web/api/unknown-names.ts";
import type { DaemonClient } from "../daemon-client.ts";
import { readNodesPage } from "./node-lookup.ts";

/** Returns a sentence for each location that the daemon does not know, for a result without rows. */
export async function unknownLocations(
  { region, country }: Pick<NameFilters, "region" | "country">,
  daemon: DaemonClient,
): Promise<readonly string[]> {
  if (region === undefined && country === undefined) return [];
  const response = await readNodesPage({ region, country, limit: 1 }, daemon);
  return response.ok ? (response.value.warnings ?? []) : [];
}
