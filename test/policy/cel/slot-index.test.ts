import fc from "fast-check";
import { expect, test } from "vitest";
import { SlotIndex } from "../../../src/policy/cel/field-readers.ts";

test("after any changes of the ids, the slots are those of a new map", () => {
  // Few ids, so that they move between slots and come back.
  const columns = fc.array(fc.uniqueArray(fc.constantFrom("", "a", "b", "c", "d"), { comparator: isSameNode }), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(columns, (successive) => {
      const index = new SlotIndex();
      for (const ids of successive) {
        const occupied = [...ids.entries()].filter(([, id]) => id !== "");
        expect(index.of(ids)).toEqual(new Map(occupied.map(([slot, id]) => [id, slot])));
      }
    }),
  );
});

/** Any number of slots may be empty. */
const isSameNode = (one: string, other: string) => one !== "" && one === other;
