/** Returns `compute` with a cache of its results. */
export const oncePerKey = <Key, Value>(compute: (key: Key) => Value): ((key: Key) => Value) =>
  cached(new Map<Key, { readonly value: Value }>(), compute);

/** Returns `compute` with a cache of its results, each of which is kept as long as its key. */
export const oncePerObject = <Key extends object, Value>(compute: (key: Key) => Value): ((key: Key) => Value) =>
  cached(new WeakMap<Key, { readonly value: Value }>(), compute);

interface Cache<Key, Value> {
  get(key: Key): { readonly value: Value } | undefined;
  set(key: Key, result: { readonly value: Value }): unknown;
}

function cached<Key, Value>(results: Cache<Key, Value>, compute: (key: Key) => Value): (key: Key) => Value {
  return (key) => {
    let result = results.get(key);
    if (result === undefined) {
      result = { value: compute(key) };
      results.set(key, result);
    }
    return result.value;
  };
}
