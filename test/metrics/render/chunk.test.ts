import { expect, test } from "vitest";
import { createBufferPool, createChunk, release, retain } from "../../../src/metrics/render/chunk.ts";

test("recycles a chunk once, with the last release", () => {
  let returned = 0;
  const chunk = createChunk(new Uint8Array(1), () => returned++);
  retain(chunk);
  release(chunk);
  expect(returned).toBe(0);
  release(chunk);
  expect(returned).toBe(1);
});

test("neither retains nor releases a chunk without references", () => {
  const chunk = createChunk(new Uint8Array(1));
  release(chunk);
  expect(() => retain(chunk)).toThrow("can't be retained");
  expect(() => release(chunk)).toThrow("more often than retained");
});

test("reuses a returned buffer if it fits and is not far too large", () => {
  const pool = createBufferPool();
  const memory = pool.claim(100_000);
  expect(memory.length).toBeGreaterThanOrEqual(100_000);
  pool.giveBack(memory);
  expect(pool.claim(10)).not.toBe(memory);
  expect(pool.claim(1_000_000)).not.toBe(memory);
  expect(pool.claim(99_000)).toBe(memory);
  expect(pool.claim(99_000)).not.toBe(memory);
});

test("keeps only a few spare buffers", () => {
  const pool = createBufferPool();
  const memories = new Set(Array.from({ length: 50 }, () => pool.claim(100_000)));
  for (const memory of memories) pool.giveBack(memory);
  const again = Array.from({ length: 50 }, () => pool.claim(100_000));
  expect(again.filter((memory) => memories.has(memory)).length).toBeLessThanOrEqual(8);
});
