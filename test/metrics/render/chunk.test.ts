import { expect, test } from "vitest";
import { createBufferPool } from "../../../src/metrics/render/buffer-pool.ts";
import { createChunk, release, retain } from "../../../src/metrics/render/chunk.ts";

test("a piece goes back once, when its last holder lets go", () => {
  let returned = 0;
  const chunk = createChunk(new Uint8Array(1), () => returned++);
  retain(chunk);
  release(chunk);
  expect(returned).toBe(0);
  release(chunk);
  expect(returned).toBe(1);
});

test("a piece that nobody holds can neither be held nor released", () => {
  const chunk = createChunk(new Uint8Array(1));
  release(chunk);
  expect(() => retain(chunk)).toThrow("can't be held again");
  expect(() => release(chunk)).toThrow("more often than it was held");
});

test("the pool gives out what came back if it fits, and not where it would be wasted", () => {
  const pool = createBufferPool();
  const memory = pool.claim(100_000);
  expect(memory.length).toBeGreaterThanOrEqual(100_000);
  pool.giveBack(memory);
  expect(pool.claim(10)).not.toBe(memory);
  expect(pool.claim(1_000_000)).not.toBe(memory);
  expect(pool.claim(99_000)).toBe(memory);
  expect(pool.claim(99_000)).not.toBe(memory);
});

test("the pool keeps no more than a few spares", () => {
  const pool = createBufferPool();
  const memories = new Set(Array.from({ length: 50 }, () => pool.claim(100_000)));
  for (const memory of memories) pool.giveBack(memory);
  const again = Array.from({ length: 50 }, () => pool.claim(100_000));
  expect(again.filter((memory) => memories.has(memory)).length).toBeLessThanOrEqual(8);
});
