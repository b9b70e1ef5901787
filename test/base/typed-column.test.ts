import fc from "fast-check";
import { expect, test } from "vitest";
import { SlotSet } from "../../src/base/typed-column.ts";

test("a set of slots has the size of a Set after the same additions and deletions", () => {
  const change = fc.record({ slot: fc.nat({ max: 20 }), isAdded: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change), (changes) => {
      const slots = new SlotSet();
      const expected = new Set<number>();
      for (const { slot, isAdded } of changes) {
        if (isAdded) slots.add(slot);
        else slots.delete(slot);
        if (isAdded) expected.add(slot);
        else expected.delete(slot);
        expect(slots.size).toBe(expected.size);
      }
    }),
  );
});
