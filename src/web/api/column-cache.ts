/**
 * Caches what is derived from a column. Successive snapshots share the columns that did not change, so most of it is derived
 * once.
 */
export function cacheByColumn<Column extends object, T>(derive: (column: Column) => T): (column: Column) => T {
  const cache = new WeakMap<Column, { readonly value: T }>();
  return (column) => {
    const cached = cache.get(column) ?? { value: derive(column) };
    cache.set(column, cached);
    return cached.value;
  };
}
