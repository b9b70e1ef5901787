import type { NameFilters } from "../../web/api/unknown-names.ts";
import type { DaemonClient } from "../daemon-client.ts";
import { searchOf } from "./daemon-view.ts";

/** Returns a sentence for each filter whose name the daemon does not know, for a result without rows. */
export async function unknownNames(
  { policy, region, country }: Omit<NameFilters, "node">,
  daemon: DaemonClient,
): Promise<readonly string[]> {
  const paths = [
    ...(policy === undefined ? [] : [`policies?${searchOf({ policy })}`]),
    ...(region === undefined && country === undefined ? [] : [`nodes?${searchOf({ region, country, limit: 1 })}`]),
  ];
  const responses = await Promise.all(
    paths.map((path) => daemon.get<{ readonly warnings?: readonly string[] }>(`/api/v1/${path}`, { data: "array" })),
  );
  return responses.flatMap((response) => (response.ok ? (response.value.warnings ?? []) : []));
}
