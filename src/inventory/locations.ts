import { LABEL_CAPS, type OnFolded, OTHER } from "../model/label-caps.ts";
import type { Place } from "../model/snapshot.ts";

/** Country and region pairs by number, so that a node's place is one integer. */
export interface Places {
  index(country: string, region: string): number;
  /** Drops the places that no node stands in; returns the new number of each old one, or null where all are kept. */
  compact(occupied: ReadonlySet<number>): readonly number[] | null;
  list(): readonly Place[];
}

/** Where nodes are counted whose place has no number of its own. */
const ELSEWHERE: Place = { country: OTHER, region: OTHER };
const { values: PLACES_MAX } = LABEL_CAPS.proxynet_nodes;

/** No place yet. `onFolded` is called by `compact` with the records that were placed elsewhere since the last call. */
export function createPlaces(onFolded: OnFolded): Places {
  let places: Place[] = [];
  let byName = new Map<string, number>();
  // What was handed out last: snapshots hold on to it.
  let copy: readonly Place[] | null = null;
  let folded = 0;

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
      if (places.length < PLACES_MAX) return add(place);
      folded++;
      return byName.get(keyOf(ELSEWHERE)) ?? add(ELSEWHERE);
    },
    compact(occupied) {
      if (folded > 0) onFolded("proxynet_nodes", folded);
      folded = 0;
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
