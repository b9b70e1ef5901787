import fc from "fast-check";

/** Values by field. A missing field has no value. */
export type KnownFields = Readonly<Record<string, string | number>>;

/**
 * A part of a random expression with a naive implementation of its meaning: a part without a value leaves the whole
 * without one, unless the whole is the same whatever value it had.
 */
export interface RandomExpression<V> {
  readonly text: string;
  readonly fields: readonly string[];
  /** Null: no value. */
  readonly value: (record: KnownFields) => V | null;
}

const INT_FIELDS = [
  ...["node.uptime_hours", "node.active_sessions", "sessions.total", "sessions.active", "sessions.error"],
  ...["fleet.nodes", "fleet.online", "region.nodes", "region.online"],
];
const DOUBLE_FIELDS = [
  ...["node.bandwidth_gb", "node.cpu_usage", "node.memory_usage", "node.disk_usage", "sessions.failed_ratio"],
  ...["fleet.online_ratio", "region.online_ratio", "fleet.median.cpu_usage", "region.median.disk_usage"],
];
const TIME_FIELDS = ["now", "node.last_seen", "node.created_at", "node.updated_at"];
const TEXT_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "node.status": ["online", "offline", "quarantined", "rebooting", "maintenance"],
  "node.country": ["DE", "FR"],
  "node.region": ["a", "b"],
  "node.name": ["a", "b", "ab"],
  "node.version": ["a", "1.9"],
};
const DURATIONS = { "0s": 0, "59s": 59_000, "10m": 600_000, "1h30m": 5_400_000 };

function fieldExpression<V extends string | number>(name: string): RandomExpression<V> {
  return { text: name, fields: [name], value: (record) => (record[name] as V | undefined) ?? null };
}

function join<A, B, V>(
  write: (a: string, b: string) => string,
  [a, b]: readonly [RandomExpression<A>, RandomExpression<B>],
  work: (a: A, b: B) => V | null,
): RandomExpression<V> {
  return {
    text: `(${write(a.text, b.text)})`,
    fields: [...a.fields, ...b.fields],
    value(record) {
      const [one, other] = [a.value(record), b.value(record)];
      return one === null || other === null ? null : work(one, other);
    },
  };
}

const finite = (value: number) => (Number.isFinite(value) ? value : null);

const ARITHMETIC_CASES: readonly [string, (a: number, b: number) => number | null][] = [
  ["+", (a, b) => finite(a + b)],
  ["-", (a, b) => finite(a - b)],
  ["*", (a, b) => finite(a * b)],
];

type Ordered = string | number;
const COMPARISON_CASES: readonly [string, (a: Ordered, b: Ordered) => boolean][] = [
  ["==", (a, b) => a === b],
  ["!=", (a, b) => a !== b],
  ["<", (a, b) => a < b],
  ["<=", (a, b) => a <= b],
  [">", (a, b) => a > b],
  [">=", (a, b) => a >= b],
];
const infixText = (operator: string) => (a: string, b: string) => `${a} ${operator} ${b}`;
const ratio = (parts: readonly [RandomExpression<number>, RandomExpression<number>]) =>
  join(
    (a, b) => `ratio(${a}, ${b})`,
    parts,
    (a: number, b: number) => (b === 0 ? null : finite(a / b)),
  );

// Values that every field could have, so that no comparison is refused as one that never holds.
const literalNumber = fc
  .constantFrom("0", "1", "0.5", "0.25")
  .map((text): RandomExpression<number> => ({ text, fields: [], value: () => Number(text) }));
const numberField = fc.constantFrom(...INT_FIELDS, ...DOUBLE_FIELDS).map((name) => fieldExpression<number>(name));
const doubleField = fc.constantFrom(...DOUBLE_FIELDS).map((name) => fieldExpression<number>(name));
const timeField = fc.constantFrom(...TIME_FIELDS).map((name) => fieldExpression<number>(name));
const length = fc
  .constantFrom(...Object.entries(DURATIONS))
  .map(([text, ms]): RandomExpression<number> => ({ text: `duration("${text}")`, fields: [], value: () => ms }));

const textCondition = fc.constantFrom(...Object.keys(TEXT_FIELDS)).chain((name) => {
  const literal = fc
    .constantFrom(...TEXT_FIELDS[name]!)
    .map((text): RandomExpression<string> => ({ text: JSON.stringify(text), fields: [], value: () => text }));
  const field = fc.constant(fieldExpression<string>(name));
  return fc.oneof(
    fc
      .tuple(fc.constantFrom(...COMPARISON_CASES.slice(0, 2)), field, literal)
      .map(([[operator, work], ...sides]) => join(infixText(operator), sides, work)),
    fc.tuple(field, fc.subarray([...TEXT_FIELDS[name]!], { minLength: 1 })).map(
      ([{ text, fields: names, value }, list]): RandomExpression<boolean> => ({
        text: `(${text} in ${JSON.stringify(list)})`,
        fields: names,
        value(record) {
          const member = value(record);
          return member === null ? null : list.includes(member);
        },
      }),
    ),
    fc
      .tuple(fc.constantFrom("contains" as const, "startsWith" as const, "endsWith" as const), field, literal)
      .map(([method, ...sides]) =>
        join(
          (a, b) => `${a}.${method}(${b})`,
          sides,
          (a: string, b: string) =>
            ({ contains: a.includes(b), startsWith: a.startsWith(b), endsWith: a.endsWith(b) })[method],
        ),
      ),
  );
});

const timeCondition = fc
  .tuple(fc.constantFrom(...COMPARISON_CASES.slice(2)), timeField, timeField, length)
  .map(([[operator, work], a, b, duration]) =>
    join(infixText(operator), [join(infixText("-"), [a, b], (x: number, y: number) => x - y), duration], work),
  );

const expressionGrammar = fc.letrec<{ number: RandomExpression<number>; condition: RandomExpression<boolean> }>(
  (tie) => {
    const two = fc.tuple(tie("number"), tie("number"));
    const numberOf = fc.oneof(
      { depthSize: "xsmall", maxDepth: 3, withCrossShrink: true },
      fc.oneof(numberField, literalNumber),
      fc
        .tuple(fc.constantFrom(...ARITHMETIC_CASES), two)
        .map(([[operator, work], sides]) => join(infixText(operator), sides, work)),
      two.map(ratio),
      fc.tuple(tie("condition"), doubleField, doubleField).map(([test, yes, no]) => choice(test, yes, no)),
    );
    // Every comparison reads a field, as it must.
    const comparison = fc
      .tuple(
        fc.constantFrom(...COMPARISON_CASES),
        fc.oneof(numberField, fc.tuple(numberField, tie("number")).map(ratio)),
        tie("number"),
      )
      .map(([[operator, work], ...sides]) => join(infixText(operator), sides, work));
    const both = fc.tuple(tie("condition"), tie("condition"));
    const condition = fc.oneof(
      { depthSize: "xsmall", maxDepth: 3, withCrossShrink: true },
      fc.oneof(comparison, textCondition, timeCondition),
      both.map((sides) => threeValuedOperator("&&", sides, (a, b) => a && b)),
      both.map((sides) => threeValuedOperator("||", sides, (a, b) => a || b)),
      tie("condition").map(
        ({ text, fields: names, value }): RandomExpression<boolean> => ({
          text: `!${text}`,
          fields: names,
          value(record) {
            const operand = value(record);
            return operand === null ? null : !operand;
          },
        }),
      ),
      fc.tuple(tie("condition"), both).map(([test, [yes, no]]) => choice(test, yes, no)),
    );
    return { number: numberOf, condition };
  },
);

/**
 * An operator between conditions: it has a value where that is the same for every value that the unknown ones may have.
 */
function threeValuedOperator(
  operator: string,
  sides: readonly [RandomExpression<boolean>, RandomExpression<boolean>],
  work: (a: boolean, b: boolean) => boolean,
): RandomExpression<boolean> {
  const possible = (value: boolean | null) => (value === null ? [true, false] : [value]);
  const joined = join(infixText(operator), sides, work);
  return {
    ...joined,
    value(record) {
      const [ones, others] = [possible(sides[0].value(record)), possible(sides[1].value(record))];
      const outcomes = new Set(ones.flatMap((one) => others.map((other) => work(one, other))));
      return outcomes.size === 1 ? [...outcomes][0]! : null;
    },
  };
}

function choice<V>(
  test: RandomExpression<boolean>,
  yes: RandomExpression<V>,
  no: RandomExpression<V>,
): RandomExpression<V> {
  return {
    text: `(${test.text} ? ${yes.text} : ${no.text})`,
    fields: [...test.fields, ...yes.fields, ...no.fields],
    value(record) {
      const is = test.value(record);
      return is === null ? null : (is ? yes : no).value(record);
    },
  };
}

/** Random conditions of the grammar that policies may use. */
export const randomConditions: fc.Arbitrary<RandomExpression<boolean>> = expressionGrammar.condition;
