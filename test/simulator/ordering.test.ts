import fc from "fast-check";
import { expect, test } from "vitest";
import { nodeId, nodeIndex, sessionId, sessionSlot } from "../../src/simulator/fleet/node-identity.ts";
import { scramble, unscramble } from "../../src/simulator/hash.ts";
import { createGroupedList } from "../../src/simulator/sessions/ordered-groups.ts";

const words = fc.nat({ max: 0xffffffff });

test("a grouped list counts and pages as a plain list does, also after compactions", () => {
  const capacity = 40;
  const moves = fc.array(
    fc.record({ member: fc.nat({ max: capacity - 1 }), group: fc.nat({ max: 2 }), leave: fc.boolean() }),
    { minLength: 4_000, maxLength: 4_500 },
  );
  const pageRequest = fc.record({
    groups: fc.nat({ max: 7 }),
    offset: fc.nat({ max: 45 }),
    limit: fc.nat({ max: 45 }),
  });
  fc.assert(
    fc.property(moves, fc.array(pageRequest, { minLength: 5 }), (steps, pages) => {
      const grouped = createGroupedList(capacity, 3);
      const list: { member: number; group: number }[] = [];
      for (const { member, group, leave } of steps) {
        const position = list.findIndex((entry) => entry.member === member);
        const entry = list[position];
        if (entry === undefined) {
          grouped.join(member, group);
          list.push({ member, group });
        } else if (leave) {
          grouped.leave(member, entry.group);
          list.splice(position, 1);
        } else {
          grouped.regroup(member, entry.group, group);
          entry.group = group;
        }
      }
      for (const { groups, offset, limit } of pages) {
        const expected = list.filter(({ group }) => (groups & (1 << group)) !== 0).map(({ member }) => member);
        expect(grouped.count(groups)).toBe(expected.length);
        expect(grouped.page(groups, offset, limit)).toEqual(expected.slice(offset, offset + limit));
      }
    }),
    { numRuns: 10 },
  );
});

test("IDs are unique and can be converted back", () => {
  fc.assert(
    fc.property(words, words, words, (seed, one, other) => {
      expect(unscramble(scramble(one))).toBe(one);
      expect(nodeIndex(seed, nodeId(seed, one))).toBe(one);
      expect(sessionSlot(seed, sessionId(seed, one, other))).toEqual({ slot: one, generation: other });
      expect(nodeId(seed, one) === nodeId(seed, other)).toBe(one === other);
    }),
  );
  expect([nodeIndex(1, "node_xyz"), nodeIndex(1, "12345678"), sessionSlot(1, "sess_0")]).toEqual([null, null, null]);
});
