import { crc32, deflateRawSync } from "node:zlib";
import type { Chunk } from "../../metrics/render/chunk.ts";
import { releaseAll, retainAll } from "../../metrics/render/exposition.ts";
import { checksumShift, combineChecksums } from "./crc32-combine.ts";
import { createDeflater, DEFLATE_LEVEL } from "./deflater.ts";

/** A deflated chunk, and its effect on the checksum of a body. */
interface DeflatedChunk {
  readonly bytes: Uint8Array;
  readonly checksum: number;
  readonly shift: number;
  /** Bytes before deflation. */
  readonly length: number;
}

/** The beginning of a gzip member: what successive scrapes share. */
interface GzipStart {
  readonly chunks: readonly Uint8Array[];
  readonly checksum: number;
  readonly length: number;
}

/** Half of the four threads in Node's pool. */
const DEFLATERS_COUNT = 2;

// Magic, deflate, no flags, no time, fastest, of no particular system (RFC 1952, section 2.3).
const GZIP_HEADER = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255);

/** Creates a compressor that caches deflated chunks for as long as the chunks exist. */
export function createCompressor() {
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

  return {
    /** Returns the beginning of a gzip body with the chunks, which are retained until then. */
    start: (chunks: readonly Chunk[]) => memoize(starts, chunks, () => build(chunks)),
  };
}

/**
 * Returns the whole body as one gzip member, because some clients read only the first. The rest is deflated synchronously,
 * which for some kilobytes takes less time than handing it to a thread.
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

/** Caches the result for `key`. A failure is not cached. */
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
