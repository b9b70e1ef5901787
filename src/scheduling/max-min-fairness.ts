/** Something that wants a part of what constraints leave. */
export interface Demand<Name> {
  readonly name: Name;
  /** Who needs less than its share leaves the rest to the others. */
  readonly weight: number;
  readonly wanted: number;
}

/** What some demands may have together. */
export interface Constraint<Name, Bound> {
  readonly bound: Bound;
  readonly capacity: number;
  holds(name: Name): boolean;
}

/** What a demand gets; `boundBy`: the constraint that keeps it from more; null: it has all that it wants. */
export interface Grant<Bound> {
  readonly given: number;
  readonly boundBy: Bound | null;
}

interface Level<Name, Bound> extends Demand<Name> {
  given: number;
  /** Undefined while it may still be given more. */
  boundBy: Bound | null | undefined;
}

/** Amounts closer than this are the same. */
const EPSILON = 1e-9;

/**
 * Shares out by weighted max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2), by progressive
 * filling: raises all together, each by its weight, until it has what it wants or a constraint that holds it is used up.
 */
export function shareFairly<Name, Bound>(
  demands: readonly Demand<Name>[],
  constraints: readonly Constraint<Name, Bound>[],
): ReadonlyMap<Name, Grant<Bound>> {
  const levels = demands.map((demand): Level<Name, Bound> => ({ ...demand, given: 0, boundBy: undefined }));
  while (levels.some(({ boundBy }) => boundBy === undefined)) raiseLevels(levels, constraints);
  return new Map(levels.map(({ name, given, boundBy }) => [name, { given, boundBy: boundBy ?? null }]));
}

function raiseLevels<Name, Bound>(levels: Level<Name, Bound>[], constraints: readonly Constraint<Name, Bound>[]): void {
  const open = levels.filter(({ boundBy }) => boundBy === undefined);
  const rooms = constraints.map((constraint) => {
    const weight = open.reduce((sum, each) => sum + (constraint.holds(each.name) ? each.weight : 0), 0);
    return weight === 0 ? Number.POSITIVE_INFINITY : roomOf(constraint, levels) / weight;
  });
  const step = Math.min(...rooms, ...open.map(({ wanted, given, weight }) => (wanted - given) / weight));
  for (const level of open) {
    level.given += step * level.weight;
    if (level.given >= level.wanted - EPSILON) Object.assign(level, { given: level.wanted, boundBy: null });
  }
  constraints.forEach(({ bound, holds }, index) => {
    if (rooms[index]! > step + EPSILON) return;
    for (const level of open) if (level.boundBy === undefined && holds(level.name)) level.boundBy = bound;
  });
}

function roomOf<Name, Bound>(
  { capacity, holds }: Constraint<Name, Bound>,
  levels: readonly Level<Name, Bound>[],
): number {
  const used = levels.reduce((sum, { name, given }) => sum + (holds(name) ? given : 0), 0);
  return Math.max(0, capacity - used);
}
