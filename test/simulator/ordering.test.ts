import fc from "fast-check";
import { expect, test } from "vitest";
import { nodeId, nodeIndex, sessionId } from "../../src/simulator/fleet/node-identity.ts";
import { scramble, unscramble } from "../../src/simulator/hash.ts";

const words = fc.nat({ max: 0xffffffff });

test("IDs are unique, and those of nodes can be converted back", () => {
  fc.assert(
    fc.property(words, words, words, (seed, one, other) => {
      expect(unscramble(scramble(one))).toBe(one);
      expect(nodeIndex(seed, nodeId(seed, one))).toBe(one);
      expect(nodeId(seed, one) === nodeId(seed, other)).toBe(one === other);
      expect(sessionId(seed, one) === sessionId(seed, other)).toBe(one === other);
    }),
  );
  expect([nodeIndex(1, "node_xyz"), nodeIndex(1, "12345678")]).toEqual([null, null]);
});
