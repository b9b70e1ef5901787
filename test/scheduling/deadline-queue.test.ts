import fc from "fast-check";
import { expect, test } from "vitest";
import { DeadlineQueue } from "../../src/scheduling/deadline-queue.ts";

const SLOTS = 50;
const CAUSES = 3;
const slots = fc.nat(SLOTS - 1);

test("returns deadlines in the order of a sorted list, by cause, after any sequence of changes", () => {
  const steps = fc.array(
    fc.record({
      slot: slots,
      cause: fc.nat(CAUSES - 1),
      due: fc.nat(1_000),
      isCleared: fc.nat(3).map((chance) => chance === 0),
    }),
    { minLength: 200, maxLength: 800, size: "max" },
  );
  fc.assert(
    fc.property(steps, (taken) => {
      const deadlines = new DeadlineQueue(CAUSES);
      const plain = new Map<number, { cause: number; due: number }>();
      for (const { slot, cause, due, isCleared } of taken) {
        if (isCleared) {
          deadlines.clear(slot);
          plain.delete(slot);
        } else {
          deadlines.set(slot, cause, due);
          plain.set(slot, { cause, due });
        }
      }
      for (let cause = 0; cause < CAUSES; cause++) {
        const sorted = [...plain]
          .filter(([, each]) => each.cause === cause)
          .sort(([slot, one], [other, two]) => one.due - two.due || slot - other)
          .map(([slot]) => slot);
        expect(deadlines.slotsOf(cause).toSorted((a, b) => a - b)).toEqual(sorted.toSorted((a, b) => a - b));
        for (const slot of sorted) {
          expect(deadlines.first(cause)).toBe(slot);
          expect([deadlines.causeOf(slot), deadlines.dueOf(slot)]).toEqual([cause, plain.get(slot)!.due]);
          deadlines.clear(slot);
          expect([deadlines.causeOf(slot), deadlines.dueOf(slot)]).toEqual([-1, Number.POSITIVE_INFINITY]);
        }
        expect(deadlines.first(cause)).toBe(-1);
      }
    }),
  );
});

test("keeps each deadline once if deadlines are cleared and set again at the same times", () => {
  const [rounds, count] = [8, 50_000];
  const deadlines = new DeadlineQueue(1);
  // A queue that kept the repeated deadlines would be pruned at every step, which takes longer than a test may.
  for (let round = 0; round < rounds; round++) {
    for (let slot = 0; slot < count; slot++) {
      deadlines.clear(slot);
      deadlines.set(slot, 0, slot);
    }
  }
  expect(deadlines.slotsOf(0)).toHaveLength(count);
  expect(deadlines.first(0)).toBe(0);
});
