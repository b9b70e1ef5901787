import { DAY_MS, MINUTE_MS } from "../base/duration.ts";
import { seededRandom } from "../base/random.ts";
import { KNOWN_STATUSES } from "../model/node.ts";
import type { EpochMs } from "../model/time.ts";
import type { Expression } from "./cel/expression.ts";
import { FIELDS, type Field } from "./cel/fields.ts";
import { fieldsOfTerm, type LiteralTerm, type Term, type Value, walkTerms } from "./cel/term.ts";

/** A sampled state of a node: a value for each field that the expressions read. */
export type SampledState = ReadonlyMap<Field, Value>;

/** The time of every sample, unless the expressions have constant times. */
export const SAMPLE_NOW = Date.UTC(2026, 0, 5, 12);

/**
 * Maximum number of samples, of which each value of `now` gets an equal share. If there are more combinations, random
 * ones are sampled.
 */
const STATES_MAX = 20_000;
const SEED = 1;
/** Distance of a sample from a constant that it is compared with. */
const BOUND_OFFSET = 0.001;

/**
 * Yields states of a node with values on both sides of every constant in the expressions, where two versions of a
 * condition are most likely to differ. The same expressions yield the same states. If they compare `now` with a
 * constant time, there are several values of `now`. No timestamp is after it.
 */
export function* sampleStates(expressions: readonly Expression[]): Generator<SampledState> {
  const named = new Set(expressions.flatMap(({ fields }) => fields));
  const fields = FIELDS.filter((field) => named.has(field));
  const random = seededRandom(SEED);
  const nows = sampledNows(fields, expressions);
  const statesMax = Math.ceil(STATES_MAX / nows.length);
  for (const now of nows) {
    const choices = fields.map((field) => sampledValues(field, comparedConstants(expressions, field), now));
    yield* combine(fields, choices, statesMax, random);
  }
}

/** Yields all combinations of the choices for each field, or `max` random ones if there are more. */
function* combine(
  fields: readonly Field[],
  choices: readonly (readonly Value[])[],
  max: number,
  random: () => number,
): Generator<SampledState> {
  const total = choices.reduce((product, { length }) => product * length, 1);
  for (let index = 0; index < Math.min(total, max); index++) {
    let rest = index;
    const values = choices.map((values): Value => {
      if (total > max) return values[Math.floor(random() * values.length)]!;
      const value = values[rest % values.length]!;
      rest = Math.floor(rest / values.length);
      return value;
    });
    yield new Map(fields.map((field, position) => [field, values[position]!]));
  }
}

/** Returns whether an expression is true in a state. If it is unknown, this is false. */
export const isTrueIn = ({ fields, evaluate }: Expression, state: SampledState): boolean =>
  evaluate(fields.map((field) => state.get(field)!)) === true;

/** Returns the constant times in expressions, such as `timestamp("2026-01-31T00:00:00Z")`. */
export const constantTimes = (expressions: readonly Expression[]): readonly EpochMs[] =>
  expressions.flatMap(({ condition }) => timesOf(literalsIn(condition)));

const literalsIn = (term: Term): readonly LiteralTerm[] =>
  [...walkTerms(term)].filter((part) => part.kind === "literal");

const timesOf = (literals: readonly LiteralTerm[]): readonly EpochMs[] =>
  literals.flatMap(({ value, isTimestamp }) => (isTimestamp === true ? [Number(value)] : []));

/** Returns the constants in each comparison, or only in those that read a field. */
const comparedConstants = (expressions: readonly Expression[], field?: Field): readonly (readonly LiteralTerm[])[] =>
  expressions
    .flatMap(({ condition }) => [...walkTerms(condition)])
    .filter(({ kind }) => kind === "comparison" || kind === "in")
    .filter((test) => field === undefined || fieldsOfTerm(test).includes(field))
    .map(literalsIn);

/** Returns the values of `now`, in ascending order. The last one is at least a day after all bounds. */
function sampledNows(fields: readonly Field[], expressions: readonly Expression[]): readonly EpochMs[] {
  const later = boundTimes(comparedConstants(expressions)).map((at) => at + DAY_MS);
  const last = later.filter(isDate).reduce((max, at) => Math.max(max, at), SAMPLE_NOW);
  const now = fields.find(({ name }) => name === "now");
  const times = now === undefined ? [] : withNeighbors(boundTimes(comparedConstants(expressions, now)));
  return ascending([...times, last]).filter((at) => isDate(at) && at <= last);
}

/** Returns the constant times in comparisons, and their sums and differences with the constant durations in the same. */
const boundTimes = (comparisons: readonly (readonly LiteralTerm[])[]): readonly EpochMs[] =>
  comparisons.flatMap((literals) => {
    const durations = numbersOf(literals);
    return timesOf(literals).flatMap((at) => [at, ...durations.flatMap((duration) => [at - duration, at + duration])]);
  });

const numbersOf = (literals: readonly LiteralTerm[]): readonly number[] =>
  literals.flatMap(({ value, isTimestamp }) => (typeof value === "number" && isTimestamp !== true ? [value] : []));

/** Returns values of a field on both sides of the constants in comparisons, in ascending order. */
function sampledValues(
  { name, type, range }: Field,
  comparisons: readonly (readonly LiteralTerm[])[],
  now: EpochMs,
): readonly Value[] {
  const constants = comparisons.flat();
  const numbers = numbersOf(constants);
  switch (type) {
    case "string": {
      const texts = constants.map(({ value }) => value).filter((value) => typeof value === "string");
      // Strings that begin or end with a constant.
      const longer = texts.flatMap((text) => [`${text}-x`, `x-${text}`]);
      // An unknown status counts as missing.
      return range === "status" ? KNOWN_STATUSES : [...new Set([...texts, "another", ...longer])];
    }
    case "int":
      return ascending([0, ...numbers.flatMap((bound) => [Math.floor(bound) - 1, bound, Math.ceil(bound) + 1])]).filter(
        (value) => Number.isInteger(value) && value >= 0,
      );
    case "double":
      return ascending([
        0,
        1,
        ...numbers.flatMap((bound) => [bound - BOUND_OFFSET, bound, bound + BOUND_OFFSET]),
      ]).filter((value) => value >= 0 && (range !== "ratio" || value <= 1));
    case "timestamp": {
      if (name === "now") return [now];
      const times = withNeighbors(boundTimes(comparisons));
      const ages = [0, 365 * DAY_MS, ...withNeighbors(numbers)];
      return ascending([...times, ...ages.map((age) => now - age)]).filter((at) => isDate(at) && at <= now);
    }
    default:
      return type satisfies never;
  }
}

const withNeighbors = (times: readonly number[]): readonly number[] =>
  times.flatMap((at) => [at - MINUTE_MS, at, at + MINUTE_MS]);

/** Whether a Date can represent a time. Constant durations may be longer than its range. */
const isDate = (at: EpochMs): boolean => !Number.isNaN(new Date(at).getTime());

const ascending = (values: readonly number[]): readonly number[] => [...new Set(values)].sort((a, b) => a - b);
