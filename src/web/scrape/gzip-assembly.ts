import { crc32, deflateRawSync } from "node:zlib";
import type { Chunk } from "../../metrics/render/chunk.ts";
import { releaseAll, retainAll } from "../../metrics/render/exposition.ts";
import { checksumShift, combineChecksums } from "./crc32-combine.ts";
import { createDeflater, DEFLATE_LEVEL } from "./deflater.ts";

/** A run of bytes, deflated, and what it does to the checksum of a body. */
interface DeflatedChunk {
  readonly bytes: Uint8Array;
  readonly checksum: number;
  readonly shift: number;
  /** Bytes before deflation. */
  readonly length: number;
}

/** The beginning of one gzip member: all that does not change from scrape to scrape. */
export interface GzipStart {
  readonly chunks: readonly Uint8Array[];
  readonly checksum: number;
  readonly length: number;
}

/** One a core of the smallest machine that this is meant for; the thread pool has four. */
const DEFLATERS_COUNT = 2;

// Magic, deflate, no flags, no time, fastest, of no particular system (RFC 1952, section 2.3).
const GZIP_HEADER = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255);

/** Deflates pieces off the loop, each at most once for as long as it exists, whatever bodies it is part of. */
export interface Compressor {
  /** The beginning of a gzip body that holds the pieces. They are held until it is there. */
  start(chunks: readonly Chunk[]): Promise<GzipStart>;
}

/** A compressor that remembers what it deflated. */
export function createCompressor(): Compressor {
  const deflaters = Array.from({ length: DEFLATERS_COUNT }, createDeflater);
  const deflated = new WeakMap<Chunk, Promise<DeflatedChunk>>();
  const starts = new WeakMap<readonly Chunk[], Promise<GzipStart>>();

  async function deflate(bytes: Uint8Array): Promise<DeflatedChunk> {
    const free = deflaters.reduce((one, other) => (other.pending() < one.pending() ? other : one));
    return {
      bytes: await free.deflate(bytes),
      checksum: crc32(bytes),
      shift: checksumShift(bytes.length),
      length: bytes.length,
    };
  }

  const deflateOnce = (chunk: Chunk) => memoize(deflated, chunk, () => deflate(chunk.bytes));

  async function build(chunks: readonly Chunk[]): Promise<GzipStart> {
    retainAll(chunks);
    try {
      let next = 0;
      const worker = async () => {
        while (next < chunks.length) await deflateOnce(chunks[next++]!);
      };
      await Promise.all(Array.from({ length: DEFLATERS_COUNT }, worker));
      return join(await Promise.all(chunks.map(deflateOnce)));
    } finally {
      releaseAll(chunks);
    }
  }

  return { start: (chunks) => memoize(starts, chunks, () => build(chunks)) };
}

/**
 * The whole body: one gzip member, since not every client reads on after the first. The rest is deflated on the spot,
 * which for some kilobytes takes less than to hand it to a thread.
 */
export function finishGzip(start: GzipStart, rest: Uint8Array): readonly Uint8Array[] {
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(combineChecksums(start.checksum, crc32(rest), checksumShift(rest.length)), 0);
  trailer.writeUInt32LE((start.length + rest.length) % 2 ** 32, 4);
  return [...start.chunks, deflateRawSync(rest, { level: DEFLATE_LEVEL }), trailer];
}

function join(chunks: readonly DeflatedChunk[]): GzipStart {
  let checksum = 0;
  let length = 0;
  for (const chunk of chunks) {
    checksum = combineChecksums(checksum, chunk.checksum, chunk.shift);
    length += chunk.length;
  }
  return { chunks: [GZIP_HEADER, ...chunks.map(({ bytes }) => bytes)], checksum, length };
}

/** What was made of `key` before, or is being made; a failure is forgotten, so that the next one tries again. */
function memoize<Key extends WeakKey, Value>(
  known: WeakMap<Key, Promise<Value>>,
  key: Key,
  make: () => Promise<Value>,
): Promise<Value> {
  const found = known.get(key);
  if (found !== undefined) return found;
  const made = make();
  known.set(key, made);
  made.catch(() => known.delete(key));
  return made;
}
