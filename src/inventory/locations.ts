import type { Location } from "../model/snapshot.ts";

/**
 * Creates a table that assigns numbers to pairs of country and region, so that the location of a node is one integer.
 * Policies and limits read it, so it has all pairs. Only what is exported is capped.
 */
export function createLocationTable() {
  let locations: Location[] = [];
  let byName = new Map<string, number>();
  /** Shared by snapshots until the table changes. */
  let copy: readonly Location[] | null = null;

  return {
    /** Returns the number of a location. */
    index(country: string, region: string): number {
      const location = { country, region };
      const known = byName.get(keyOf(location));
      if (known !== undefined) return known;
      locations.push(location);
      byName.set(keyOf(location), locations.length - 1);
      copy = null;
      return locations.length - 1;
    },
    /**
     * Removes the locations without nodes. The others keep their order. Returns the new number of each old one, or null
     * if all are kept.
     */
    compact(occupied: ReadonlySet<number>): readonly number[] | null {
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

type StatedLocation = Readonly<Record<keyof Location, string | null>>;

/** Returns the first location. A country or region that it does not state is taken from the second. */
export const mergeLocations = (first?: StatedLocation, second?: StatedLocation): Location => ({
  country: first?.country || second?.country || "",
  region: first?.region || second?.region || "",
});
