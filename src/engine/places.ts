import type { Place } from "../model/snapshot.ts";

/** Country and region pairs by number, so that a node's place is one integer. */
export interface Places {
  index(country: string, region: string): number;
  /** Drops the places that no node stands in; returns the new number of each old one, or null where all are kept. */
  compact(occupied: ReadonlySet<number>): readonly number[] | null;
  list(): readonly Place[];
}

/**
 * Places that are told apart. Each has a series a state: what comes beyond is gathered under a country and a region of
 * this name, for a service that gives each node a region of its own must not fill the page, or the memory, with them.
 */
const PLACES_MAX = 2_000;
const ELSEWHERE: Place = { country: "other", region: "other" };

/** No place yet. */
export function createPlaces(): Places {
  let places: Place[] = [];
  let byName = new Map<string, number>();
  // What was handed out last: snapshots hold on to it.
  let copy: readonly Place[] | null = null;

  function add(place: Place): number {
    places.push(place);
    byName.set(keyOf(place), places.length - 1);
    copy = null;
    return places.length - 1;
  }

  return {
    index(country, region) {
      const place = { country, region };
      const known = byName.get(keyOf(place));
      if (known !== undefined) return known;
      return places.length < PLACES_MAX ? add(place) : (byName.get(keyOf(ELSEWHERE)) ?? add(ELSEWHERE));
    },
    compact(occupied) {
      if (occupied.size === places.length) return null;
      const renumbered = new Array<number>(places.length).fill(0);
      const kept = places.filter((_, index) => occupied.has(index));
      byName = new Map(kept.map((place, index) => [keyOf(place), index]));
      places.forEach((place, index) => {
        renumbered[index] = byName.get(keyOf(place)) ?? 0;
      });
      places = kept;
      copy = null;
      return renumbered;
    },
    list() {
      copy ??= places.slice();
      return copy;
    },
  };
}

const keyOf = ({ country, region }: Place): string => `${country}\u0000${region}`;
