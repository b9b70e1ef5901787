import type { Place } from "../model/snapshot.ts";

/** Country and region pairs by number, so that a node's place is one integer. */
export interface Places {
  index(country: string, region: string): number;
  /** Drops the places that no node stands in; returns the new number of each old one, or null where all are kept. */
  compact(occupied: ReadonlySet<number>): readonly number[] | null;
  list(): readonly Place[];
}

/** No place yet. */
export function createPlaces(): Places {
  let places: Place[] = [];
  let byName = new Map<string, number>();
  const key = (country: string, region: string) => `${country}\u0000${region}`;

  return {
    index(country, region) {
      const known = byName.get(key(country, region));
      if (known !== undefined) return known;
      // A new array: snapshots hold on to the old one.
      places = [...places, { country, region }];
      byName.set(key(country, region), places.length - 1);
      return places.length - 1;
    },
    compact(occupied) {
      if (occupied.size === places.length) return null;
      const kept = places.filter((_, index) => occupied.has(index));
      const renumbered = places.map((place) => kept.indexOf(place));
      places = kept;
      byName = new Map(kept.map(({ country, region }, index) => [key(country, region), index]));
      return renumbered;
    },
    list: () => places,
  };
}
