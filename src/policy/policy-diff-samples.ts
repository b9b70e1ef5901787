import { DAY_MS, MINUTE_MS } from "../base/duration.ts";
import { seededRandom } from "../base/random.ts";
import { NODE_STATUSES } from "../model/node.ts";
import type { EpochMs } from "../model/time.ts";
import type { Expression } from "./cel/expression.ts";
import { FIELDS, type Field } from "./cel/fields.ts";
import { fieldsOfTerm, type LiteralTerm, type Term, type Value, walkTerms } from "./cel/term.ts";

/** A sampled state of a node: a value for each field that the expressions read. */
export type SampledState = ReadonlyMap<Field, Value>;

/**
 * The time of every sample, unless the expressions have constant times. Then it is a day after the last one, if that is
 * later. Timestamps are before it.
 */
export const SAMPLE_NOW = Date.UTC(2026, 0, 5, 12);

/** Maximum number of samples. If there are more combinations, this many random ones are sampled. */
const STATES_MAX = 20_000;
const SEED = 1;
/** Distance of a sample from a constant that it is compared with. */
const BOUND_OFFSET = 0.001;

/**
 * Yields states of a node with values on both sides of every constant in the expressions, where two versions of a
 * condition are most likely to differ. The same expressions yield the same states.
 */
export function* sampleStates(expressions: readonly Expression[]): Generator<SampledState> {
  const named = new Set(expressions.flatMap(({ fields }) => fields));
  const fields = FIELDS.filter((field) => named.has(field));
  const now = Math.max(SAMPLE_NOW, ...constantTimes(expressions).map((at) => at + DAY_MS));
  const choices = fields.map((field) => sampledValues(field, comparedConstants(field, expressions), now));
  const total = choices.reduce((product, { length }) => product * length, 1);
  const random = seededRandom(SEED);
  for (let index = 0; index < Math.min(total, STATES_MAX); index++) {
    let rest = index;
    const values = choices.map((values): Value => {
      if (total > STATES_MAX) return values[Math.floor(random() * values.length)]!;
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

/** Returns the constants that expressions compare a field with. */
const comparedConstants = (field: Field, expressions: readonly Expression[]): readonly LiteralTerm[] =>
  expressions
    .flatMap(({ condition }) => [...walkTerms(condition)])
    .filter(({ kind }) => kind === "comparison" || kind === "in" || kind === "method")
    .filter((test) => fieldsOfTerm(test).includes(field))
    .flatMap(literalsIn);

/** Returns values of a field on both sides of the constants, in ascending order. */
function sampledValues(
  { name, type, range }: Field,
  constants: readonly LiteralTerm[],
  now: EpochMs,
): readonly Value[] {
  const bounds = constants.filter(({ isTimestamp }) => isTimestamp !== true).map(({ value }) => value);
  const numbers = bounds.filter((value) => typeof value === "number");
  switch (type) {
    case "string": {
      const texts = bounds.filter((value) => typeof value === "string");
      // Strings that begin or end with a constant.
      const longer = texts.flatMap((text) => [`${text}-x`, `x-${text}`]);
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
      const times = withNeighbours(timesOf(constants));
      if (name === "now") return ascending([...times, now]);
      const ages = [0, 365 * DAY_MS, ...withNeighbours(numbers)];
      return ascending([...times, ...ages.map((age) => now - age)]).filter((at) => at <= now);
    }
    default:
      return type satisfies never;
  }
}

/** The statuses to sample. An unknown status counts as missing. */
const KNOWN_STATUSES = NODE_STATUSES.filter((status) => status !== "unknown");

const withNeighbours = (times: readonly number[]): readonly number[] =>
  times.flatMap((at) => [at - MINUTE_MS, at, at + MINUTE_MS]);

const ascending = (values: readonly number[]): readonly number[] => [...new Set(values)].sort((a, b) => a - b);
