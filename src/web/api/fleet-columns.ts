/** Caches what `derive` returns for a column. Successive snapshots share the columns that did not change. */
export function cacheByColumn<Column extends object, T>(derive: (column: Column) => T): (column: Column) => T {
  const cache = new WeakMap<Column, { readonly value: T }>();
  return (column) => {
    const cached = cache.get(column) ?? { value: derive(column) };
    cache.set(column, cached);
    return cached.value;
  };
}

/** Returns the known times of a column, earliest first. */
export const sortedTimes = cacheByColumn((column: Float64Array | readonly number[]) =>
  Float64Array.from(column)
    .filter((at) => !Number.isNaN(at))
    .sort(),
);

/** Returns the slots of nodes in the order of their ids. */
export const slotsInOrder = cacheByColumn((ids: readonly string[]) =>
  [...ids.keys()].filter((slot) => ids[slot] !== "").sort((a, b) => (ids[a]! < ids[b]! ? -1 : 1)),
);
