import { LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../model/label-values.ts";
import type { Location } from "../model/snapshot.ts";

/** Country and region pairs by number, so that a node's place is one integer. */
export interface LocationTable {
  index(country: string, region: string): number;
  /** Drops the places that no node stands in; returns the new number of each old one, or null where all are kept. */
  compact(occupied: ReadonlySet<number>): readonly number[] | null;
  list(): readonly Location[];
}

/** Where nodes are counted whose place has no number of its own. */
const OTHER_LOCATION: Location = { country: OTHER_LABEL, region: OTHER_LABEL };
const { values: LOCATIONS_MAX } = LABEL_CAPS.proxynet_nodes;

/** No place yet. `onFolded` is called by `compact` with the records that were placed elsewhere since the last call. */
export function createLocationTable(onFolded: OnLabelsFolded): LocationTable {
  let locations: Location[] = [];
  let byName = new Map<string, number>();
  // What was handed out last: snapshots hold on to it.
  let copy: readonly Location[] | null = null;
  let foldedCount = 0;

  function add(location: Location): number {
    locations.push(location);
    byName.set(keyOf(location), locations.length - 1);
    copy = null;
    return locations.length - 1;
  }

  return {
    index(country, region) {
      const location = { country, region };
      const known = byName.get(keyOf(location));
      if (known !== undefined) return known;
      if (locations.length < LOCATIONS_MAX) return add(location);
      foldedCount++;
      return byName.get(keyOf(OTHER_LOCATION)) ?? add(OTHER_LOCATION);
    },
    compact(occupied) {
      if (foldedCount > 0) onFolded("proxynet_nodes", foldedCount);
      foldedCount = 0;
      if (occupied.size === locations.length) return null;
      const renumbered = new Array<number>(locations.length).fill(0);
      const kept = locations.filter((_, index) => occupied.has(index));
      byName = new Map(kept.map((location, index) => [keyOf(location), index]));
      locations.forEach((location, index) => {
        renumbered[index] = byName.get(keyOf(location)) ?? 0;
      });
      locations = kept;
      copy = null;
      return renumbered;
    },
    list() {
      copy ??= locations.slice();
      return copy;
    },
  };
}

const keyOf = ({ country, region }: Location): string => `${country}\u0000${region}`;
