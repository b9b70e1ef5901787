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

/** A constraint, with the levels that it applies to. */
interface LimitedLevels<Name, Bound> extends Pick<Constraint<Name, Bound>, "bound" | "capacity"> {
  readonly levels: readonly Level<Name, Bound>[];
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
  const limited = constraints.map(({ bound, capacity, appliesTo }) => ({
    bound,
    capacity,
    levels: levels.filter(({ name }) => appliesTo(name)),
  }));
  while (levels.some(isOpen)) raiseLevels(levels.filter(isOpen), limited);
  return new Map(levels.map(({ name, given, boundBy }) => [name, { given, boundBy: boundBy ?? null }]));
}

const isOpen = ({ boundBy }: Level<unknown, unknown>): boolean => boundBy === undefined;

/** Raises all open levels until the first of them has what it wants or reaches a constraint. */
function raiseLevels<Name, Bound>(
  open: readonly Level<Name, Bound>[],
  limited: readonly LimitedLevels<Name, Bound>[],
): void {
  const rooms = limited.map(({ capacity, levels }) => {
    let [weight, used] = [0, 0];
    for (const level of levels) {
      used += level.given;
      if (isOpen(level)) weight += level.weight;
    }
    return weight === 0 ? Number.POSITIVE_INFINITY : Math.max(0, capacity - used) / weight;
  });
  const step = Math.min(...rooms, ...open.map(({ wanted, given, weight }) => (wanted - given) / weight));
  for (const level of open) {
    level.given += step * level.weight;
    if (level.given >= level.wanted - EPSILON) Object.assign(level, { given: level.wanted, boundBy: null });
  }
  for (const [index, { bound, levels }] of limited.entries()) {
    if (rooms[index]! > step + EPSILON) continue;
    for (const level of levels) if (isOpen(level)) level.boundBy = bound;
  }
}
