import fc from "fast-check";
import { expect, test } from "vitest";
import { createEventQueue } from "../../src/base/event-queue.ts";

test("orders events by time and then by number, regardless of the order of adding", () => {
  const entries = fc.array(fc.tuple(fc.nat({ max: 20 }), fc.nat({ max: 100 })), { maxLength: 300 });
  fc.assert(
    fc.property(entries, fc.nat({ max: 3 }), (added, modulus) => {
      const queue = createEventQueue();
      for (const [at, event] of added) queue.add(at, event);
      const kept = added.filter(([, event]) => modulus === 0 || event % modulus !== 0);
      queue.prune((_, event) => modulus === 0 || event % modulus !== 0);
      const taken: [number, number][] = [];
      while (queue.size() > 0) {
        const [at, event] = [queue.nextAt(), queue.next()];
        expect(queue.take()).toBe(event);
        taken.push([at, event]);
      }
      expect(taken).toEqual(kept.toSorted((one, other) => one[0] - other[0] || one[1] - other[1]));
      expect(queue.nextAt()).toBe(Number.POSITIVE_INFINITY);
    }),
  );
});
