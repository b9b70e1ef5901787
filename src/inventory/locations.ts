import { LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../model/label-values.ts";
import type { Location } from "../model/snapshot.ts";

/** Location of the nodes beyond the cap. */
const OTHER_LOCATION: Location = { country: OTHER_LABEL, region: OTHER_LABEL };
const { values: LOCATIONS_MAX } = LABEL_CAPS.proxynet_nodes;

/**
 * Creates a table that assigns numbers to pairs of country and region, so that the location of a node is one integer.
 * `compact` calls `onFolded` with the number of records counted under `other` since the last call.
 */
export function createLocationTable(onFolded: OnLabelsFolded) {
  let locations: Location[] = [];
  let byName = new Map<string, number>();
  /** Shared by snapshots until the table changes. */
  let copy: readonly Location[] | null = null;
  let foldedCount = 0;

  function add(location: Location): number {
    locations.push(location);
    byName.set(keyOf(location), locations.length - 1);
    copy = null;
    return locations.length - 1;
  }

  return {
    /** Returns the number of a location, or beyond the cap of `proxynet_nodes` the number of the location `other`. */
    index(country: string, region: string): number {
      const location = { country, region };
      const known = byName.get(keyOf(location));
      if (known !== undefined) return known;
      if (locations.length < LOCATIONS_MAX) return add(location);
      foldedCount++;
      return byName.get(keyOf(OTHER_LOCATION)) ?? add(OTHER_LOCATION);
    },
    /** Removes the locations without nodes. Returns the new number of each old one, or null if all are kept. */
    compact(occupied: ReadonlySet<number>): readonly number[] | null {
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
    list(): readonly Location[] {
      copy ??= locations.slice();
      return copy;
    },
  };
}

const keyOf = ({ country, region }: Location): string => `${country}\u0000${region}`;
