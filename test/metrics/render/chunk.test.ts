import { expect, test } from "vitest";
import { createPiece, hold, release } from "../../../src/metrics/render/chunk.ts";
import { createPool } from "../../../src/metrics/render/buffer-pool.ts";

test("a piece goes back once, when its last holder lets go", () => {
  let returned = 0;
  const piece = createPiece(new Uint8Array(1), () => returned++);
  hold(piece);
  release(piece);
  expect(returned).toBe(0);
  release(piece);
  expect(returned).toBe(1);
});

test("a piece that nobody holds can neither be held nor released", () => {
  const piece = createPiece(new Uint8Array(1));
  release(piece);
  expect(() => hold(piece)).toThrow("can't be held again");
  expect(() => release(piece)).toThrow("more often than it was held");
});

test("the pool gives out what came back if it fits, and not where it would be wasted", () => {
  const pool = createPool();
  const memory = pool.claim(100_000);
  expect(memory.length).toBeGreaterThanOrEqual(100_000);
  pool.giveBack(memory);
  expect(pool.claim(10)).not.toBe(memory);
  expect(pool.claim(1_000_000)).not.toBe(memory);
  expect(pool.claim(99_000)).toBe(memory);
  expect(pool.claim(99_000)).not.toBe(memory);
});

test("the pool keeps no more than a few spares", () => {
  const pool = createPool();
  const memories = new Set(Array.from({ length: 50 }, () => pool.claim(100_000)));
  for (const memory of memories) pool.giveBack(memory);
  const again = Array.from({ length: 50 }, () => pool.claim(100_000));
  expect(again.filter((memory) => memories.has(memory)).length).toBeLessThanOrEqual(8);
});
