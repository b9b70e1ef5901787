import fc from "fast-check";
import { expect, test } from "vitest";
import { NumberColumn, WritableNumberColumn } from "../../src/base/number-column.ts";

/** Just over two pages. */
const LENGTH = 2 * 4_096 + 3;

const numbers = fc.constantFrom(Number.NaN, 0, -0, 1, 2.5, 1e12);

const writes = fc.array(
  fc.oneof(
    { arbitrary: fc.record({ kind: fc.constant("set"), index: fc.nat(LENGTH - 1), value: numbers }), weight: 8 },
    {
      arbitrary: fc.record({ kind: fc.constantFrom("grow", "clear", "copy"), index: fc.constant(0), value: numbers }),
      weight: 3,
    },
  ),
  { minLength: 1, maxLength: 40 },
);

function grown(length: number): WritableNumberColumn {
  const column = new WritableNumberColumn();
  for (let index = 0; index < length; index++) column.grow();
  return column;
}

test("a copy keeps its numbers when the column changes later", () => {
  fc.assert(
    fc.property(writes, (steps) => {
      const column = grown(LENGTH);
      const expected: number[] = new Array(LENGTH).fill(Number.NaN);
      const copies: { readonly copy: NumberColumn; readonly numbers: readonly number[] }[] = [];
      for (const { kind, index, value } of steps) {
        if (kind === "set") {
          column.set(index, value);
          expected[index] = value;
        } else if (kind === "grow") {
          column.grow();
          expected.push(Number.NaN);
        } else if (kind === "clear") {
          column.clear();
          expected.fill(Number.NaN);
        } else copies.push({ copy: column.copy(), numbers: [...expected] });
      }
      copies.push({ copy: column.copy(), numbers: expected });
      for (const { copy, numbers } of copies) expect([...copy]).toEqual(numbers);
    }),
    { numRuns: 50 },
  );
});

test("copying an unchanged column again returns the same copy", () => {
  const column = grown(3);
  column.set(1, 7);
  const copy = column.copy();
  column.set(1, 7);
  column.set(2, Number.NaN);
  expect(column.copy()).toBe(copy);
  column.set(2, 1);
  expect(column.copy()).not.toBe(copy);
});

test("a copy does not grow with the column, and the next copy has the new length", () => {
  const column = grown(64);
  const copy = column.copy();
  column.grow();
  column.set(64, 1);
  expect([copy.length, column.copy().length]).toEqual([64, 65]);
  expect([...column.copy()].slice(63)).toEqual([Number.NaN, 1]);
});

test("copies a range across two pages, and a whole column", () => {
  const column = NumberColumn.from(Array.from({ length: LENGTH }, (_, index) => index));
  const out = new Float64Array(5_000);
  column.copyTo(out, 4_000, 8_000);
  expect([...out.subarray(0, 4_000)]).toEqual(Array.from({ length: 4_000 }, (_, index) => 4_000 + index));
  expect(column.toArray()).toEqual(Float64Array.from(column));
});

test("returns NaN outside the column", () => {
  const column = NumberColumn.from([1, 2]);
  expect([column.at(1), column.at(2), column.at(4_096), column.at(-1)]).toEqual([
    2,
    Number.NaN,
    Number.NaN,
    Number.NaN,
  ]);
});

test("marks the differences of two columns, and finds the columns equal in a range without differences", () => {
  const changes = fc.array(fc.tuple(fc.nat(LENGTH - 1), numbers), { maxLength: 5 });
  const range = fc
    .tuple(fc.nat(LENGTH), fc.nat(LENGTH))
    .map(([one, other]) => [Math.min(one, other), Math.max(one, other)] as const);
  fc.assert(
    fc.property(changes, changes, range, (before, after, [start, end]) => {
      const column = grown(LENGTH);
      for (const [index, value] of before) column.set(index, value);
      const old = column.copy();
      for (const [index, value] of after) column.set(index, value);
      const marks = new Uint8Array(LENGTH);
      column.copy().markDifferences(old, marks);
      const isMarked = (index: number) => !Object.is(old.at(index), column.at(index));
      expect(marks.every((mark, index) => mark === (isMarked(index) ? 1 : 0))).toBe(true);
      const isChanged = after.some(
        ([index]) => index >= start && index < end && differ(old.at(index), column.at(index)),
      );
      expect(column.copy().equals(old, start, end)).toBe(!isChanged);
    }),
  );
});

/** 0 and -0 are written as the same sample. */
const differ = (one: number, other: number) => one !== other && !(Number.isNaN(one) && Number.isNaN(other));

test("marks the numbers that are at least a minimum", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(LENGTH - 1), numbers), { maxLength: 40 }), numbers, (values, min) => {
      const column = grown(LENGTH);
      for (const [index, value] of values) column.set(index, value);
      const marks = new Uint8Array(LENGTH);
      column.copy().markAtLeast(min, marks);
      expect([...marks.keys()].filter((index) => marks[index] === 1)).toEqual(
        [...marks.keys()].filter((index) => column.at(index) >= min),
      );
    }),
    { numRuns: 50 },
  );
});
