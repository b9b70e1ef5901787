import type { Collector } from "../../model/snapshot.ts";
import type { AggregateFamily, NodeFamily } from "./family.ts";
import { NODE_COUNTS, NODE_FAMILIES } from "./node-families.ts";
import { SESSION_FAMILIES, SESSION_NODE_FAMILIES } from "./session-families.ts";
import { STATISTICS_FAMILIES } from "./statistics-families.ts";

/** Every `proxynet_*` family, in the order of the page. */
export const NETWORK_FAMILIES: readonly (NodeFamily | AggregateFamily)[] = [
  NODE_COUNTS,
  ...NODE_FAMILIES,
  ...SESSION_FAMILIES,
  ...SESSION_NODE_FAMILIES,
  ...STATISTICS_FAMILIES,
];

/** Returns the names of all families, the valid values of `export.deny`. */
export const networkFamilyNames = (): readonly string[] => NETWORK_FAMILIES.map(({ name }) => name);

/** Returns the collectors whose data is needed by families that are not denied. */
export const neededCollectors = (deny: ReadonlySet<string>): ReadonlySet<Collector> =>
  new Set(NETWORK_FAMILIES.filter(({ name }) => !deny.has(name)).map(({ source }) => source));
