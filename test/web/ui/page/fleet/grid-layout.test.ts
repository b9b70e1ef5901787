import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cellAfterKey, cellAt, cellCorner, computeLayout } from "../../../../../src/web/ui/page/fleet/grid-layout.ts";

const rooms = fc.record({
  width: fc.integer({ min: 20, max: 2_000 }),
  height: fc.integer({ min: 50, max: 900 }),
  blockHeight: fc.integer({ min: 0, max: 30 }),
  gap: fc.integer({ min: 0, max: 12 }),
  head: fc.integer({ min: 0, max: 20 }),
});
const counts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 });
const total = (list: readonly number[]) => list.reduce((sum, count) => sum + count, 0);

test("every cell has its own position and is found at its middle", () => {
  fc.assert(
    fc.property(counts, rooms, (list, room) => {
      const layout = computeLayout(list, room);
      const places = new Set<string>();
      const notFound: number[] = [];
      let [right, bottom] = [0, 0];
      for (let index = 0; index < total(list); index++) {
        const { x, y } = cellCorner(layout, index);
        places.add(`${x} ${y}`);
        right = Math.max(right, x + layout.pitch);
        bottom = Math.max(bottom, y + layout.pitch);
        if (cellAt(layout, x + layout.size / 2, y + layout.size / 2) !== index) notFound.push(index);
      }
      expect(right).toBeLessThanOrEqual(layout.width);
      expect(bottom).toBeLessThanOrEqual(layout.height);
      expect(notFound).toEqual([]);
      expect(places.size).toBe(total(list));
      expect(cellAt(layout, -1, 5)).toBeNull();
      expect(cellAt(layout, layout.width + 1, 5)).toBeNull();
      expect(cellAt(layout, 5, layout.height + layout.pitch)).toBeNull();
    }),
    { numRuns: 40 },
  );
});

test("cells are as large as the height allows", () => {
  const room = { width: 800, height: 480, blockHeight: 16, gap: 8, head: 0 };
  const pitchOf = (nodes: number) => computeLayout([nodes], room).pitch;
  expect([40, 2_000, 10_000, 100_000].map(pitchOf)).toEqual([20, 13, 6, 4]);
  expect(computeLayout([100_000], room).height).toBe(2_000);
});

test("cells of many regions are as large as the names of the regions allow", () => {
  const room = { width: 800, height: 480, blockHeight: 16, gap: 8, head: 0 };
  const layout = computeLayout(new Array(25).fill(4), room);
  expect([layout.pitch, layout.height]).toEqual([16, 25 * 16 + 24 * 8]);
});

/** Three blocks of 5, 3 and 4 cells, in rows of two. */
const small = computeLayout([5, 3, 4], { width: 40, height: 1_000, blockHeight: 0, gap: 10, head: 0 });

test("arrow keys move along rows and columns and across gaps", () => {
  expect(small.columns).toBe(2);
  const walk = (from: number, ...keys: readonly string[]) =>
    keys.reduce((at, key) => cellAfterKey(small, at, key)!, from);
  // 0 1 / 2 3 / 4 – 5 6 / 7 – 8 9 / 10 11
  expect(walk(0, "ArrowLeft")).toBe(0);
  expect(walk(11, "ArrowRight")).toBe(11);
  expect(walk(4, "ArrowRight")).toBe(5);
  expect(walk(1, "ArrowDown")).toBe(3);
  expect(walk(3, "ArrowDown")).toBe(4);
  expect(walk(4, "ArrowDown")).toBe(5);
  expect(walk(6, "ArrowUp")).toBe(4);
  expect(walk(5, "ArrowUp")).toBe(4);
  expect(walk(9, "ArrowUp")).toBe(7);
  expect(walk(1, "ArrowUp")).toBe(1);
  expect(walk(10, "ArrowDown")).toBe(10);
  expect(walk(3, "Home")).toBe(0);
  expect(walk(6, "End")).toBe(7);
  expect(walk(2, "PageDown", "PageDown")).toBe(8);
  expect(walk(9, "PageDown")).toBe(11);
  expect(walk(9, "PageUp", "PageUp")).toBe(5);
  expect(cellAfterKey(small, 9, "a")).toBeNull();
});

test("every cell can be reached with arrow keys", () => {
  fc.assert(
    fc.property(counts, rooms, (list, room) => {
      const layout = computeLayout(list, room);
      const reached = new Set([0]);
      const due = [0];
      for (let at = due.pop(); at !== undefined; at = due.pop()) {
        for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] as const) {
          const next = cellAfterKey(layout, at, key)!;
          if (reached.has(next)) continue;
          reached.add(next);
          due.push(next);
        }
      }
      expect(reached.size).toBe(total(list));
    }),
    { numRuns: 20 },
  );
});
