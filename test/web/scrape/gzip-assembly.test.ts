import { crc32, gunzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Chunk, storedChunk } from "../../../src/metrics/render/chunk.ts";
import { EMPTY_NETWORK_EXPOSITION } from "../../../src/metrics/render/renderer.ts";
import {
  checksumShift,
  combineChecksums,
  createCompressor,
  finishGzip,
} from "../../../src/web/scrape/gzip-assembly.ts";

const bytes = fc.uint8Array({ maxLength: 2_000 });

const pageOf = (text: readonly Chunk[]) => ({ ...EMPTY_NETWORK_EXPOSITION, chunks: { text, openmetrics: [] } });

test("combines the checksums of two byte runs", () => {
  fc.assert(
    fc.property(bytes, bytes, (first, second) => {
      const combined = combineChecksums(crc32(first), crc32(second), checksumShift(second.length));
      expect(combined).toBe(crc32(Buffer.concat([first, second])));
    }),
  );
});

test("shifts a checksum over megabytes", () => {
  const zeros = Buffer.alloc(5_000_011);
  const combined = combineChecksums(crc32("start"), crc32(zeros), checksumShift(zeros.length));
  expect(combined).toBe(crc32(zeros, crc32("start")));
});

describe("a gzip body", () => {
  const startGzip = createCompressor();

  test("is one member with the chunks and the rest, in order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { maxLength: 8 }), bytes, async (runs, rest) => {
        const start = await startGzip(pageOf(runs.map((run) => storedChunk(run))), "text");
        const body = Buffer.concat(finishGzip(start, rest));
        expect(gunzipSync(body)).toEqual(Buffer.concat([...runs, rest]));
        // The final length covers all bytes, so there is only one member.
        expect(body.readUInt32LE(body.length - 4)).toBe(runs.reduce((sum, { length }) => sum + length, rest.length));
      }),
      { numRuns: 60 },
    );
  });

  test("reuses the deflated bytes of a chunk", async () => {
    const shared = storedChunk(Buffer.from("shared ".repeat(100)));
    const one = await startGzip(pageOf([shared, storedChunk(Buffer.from("one"))]), "text");
    const other = await startGzip(pageOf([storedChunk(Buffer.from("other")), shared]), "text");
    expect(other.chunks[2]).toBe(one.chunks[1]);
  });
});
