/** Demand for a share of limited capacity. */
export interface Demand<Name> {
  readonly name: Name;
  /** Share relative to other demands. A demand that needs less than its share leaves the rest to the others. */
  readonly weight: number;
  readonly wanted: number;
}

/** Capacity that some of the demands share. */
export interface Constraint<Name, Bound> {
  readonly bound: Bound;
  readonly capacity: number;
  appliesTo(name: Name): boolean;
}

/** What a demand gets. `boundBy` is the constraint that limits it, or null if it gets all that it wants. */
export interface Grant<Bound> {
  readonly given: number;
  readonly boundBy: Bound | null;
}

interface Level<Name, Bound> extends Demand<Name> {
  given: number;
  /** Undefined if the level may still rise. */
  boundBy: Bound | null | undefined;
}

/** Amounts closer than this are equal. */
const EPSILON = 1e-9;

/**
 * Divides capacity by weighted max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2) with progressive
 * filling: all levels rise in proportion to their weights until each has what it wants or reaches a constraint.
 */
export function shareFairly<Name, Bound>(
  demands: readonly Demand<Name>[],
  constraints: readonly Constraint<Name, Bound>[],
): ReadonlyMap<Name, Grant<Bound>> {
  const levels = demands.map((demand): Level<Name, Bound> => ({ ...demand, given: 0, boundBy: undefined }));
  while (levels.some(({ boundBy }) => boundBy === undefined)) raiseLevels(levels, constraints);
  return new Map(levels.map(({ name, given, boundBy }) => [name, { given, boundBy: boundBy ?? null }]));
}

/** Raises all open levels until the first of them has what it wants or reaches a constraint. */
function raiseLevels<Name, Bound>(levels: Level<Name, Bound>[], constraints: readonly Constraint<Name, Bound>[]): void {
  const open = levels.filter(({ boundBy }) => boundBy === undefined);
  const rooms = constraints.map(({ capacity, appliesTo }) => {
    const weight = open.reduce((sum, demand) => sum + (appliesTo(demand.name) ? demand.weight : 0), 0);
    const used = levels.reduce((sum, { name, given }) => sum + (appliesTo(name) ? given : 0), 0);
    return weight === 0 ? Number.POSITIVE_INFINITY : Math.max(0, capacity - used) / weight;
  });
  const step = Math.min(...rooms, ...open.map(({ wanted, given, weight }) => (wanted - given) / weight));
  for (const level of open) {
    level.given += step * level.weight;
    if (level.given >= level.wanted - EPSILON) Object.assign(level, { given: level.wanted, boundBy: null });
  }
  constraints.forEach(({ bound, appliesTo }, index) => {
    if (rooms[index]! > step + EPSILON) return;
    for (const level of open) if (level.boundBy === undefined && appliesTo(level.name)) level.boundBy = bound;
  });
}
