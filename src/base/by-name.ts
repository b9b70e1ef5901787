/** Returns an object with a value for each name. `index` is the position of the name. */
export const byName = <Name extends string, T>(names: readonly Name[], value: (name: Name, index: number) => T) =>
  Object.fromEntries(names.map((name, index) => [name, value(name, index)])) as Record<Name, T>;
