import fc from "fast-check";
import { expect, test } from "vitest";
import { IdIndex } from "../../src/inventory/id-index.ts";

test("the index finds what a Map finds, while rows are added, removed and moved", () => {
  const steps = fc.array(fc.record({ number: fc.nat(2_500), removes: fc.boolean() }), {
    maxLength: 5_000,
    size: "max",
  });
  fc.assert(
    fc.property(steps, (each) => {
      const index = new IdIndex();
      // The ids by row, and the rows by id.
      const ids: string[] = [];
      const rows = new Map<string, number>();
      for (const { number, removes } of each) {
        const id = `node-${number}`;
        const row = rows.get(id) ?? index.findOrAdd(id, ids.length);
        if (!rows.has(id)) {
          rows.set(id, ids.length);
          ids.push(id);
        } else if (removes) {
          index.remove(row);
          rows.delete(id);
          const last = ids.pop()!;
          if (last === id) continue;
          index.move(ids.length, row);
          ids[row] = last;
          rows.set(last, row);
        }
      }
      index.shrink(ids.length);
      expect(index.size).toBe(rows.size);
      const found = Array.from({ length: 2_501 }, (_, number) => index.find(`node-${number}`));
      expect(found).toEqual(found.map((_, number) => rows.get(`node-${number}`) ?? -1));
    }),
    { numRuns: 20 },
  );
});
