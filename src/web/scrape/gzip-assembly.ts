import { crc32, deflateRawSync } from "node:zlib";
import { holdAll, releaseAll } from "../../metrics/render/exposition.ts";
import type { Piece } from "../../metrics/render/chunk.ts";
import { checksumShift, combineChecksums } from "./crc32-combine.ts";
import { createDeflater, DEFLATE_LEVEL } from "./deflater.ts";

/** A run of bytes, deflated, and what it does to the checksum of a body. */
interface Deflated {
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
const DEFLATERS = 2;

// Magic, deflate, no flags, no time, fastest, of no particular system (RFC 1952, section 2.3).
const header = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255);

/** Deflates pieces off the loop, each at most once for as long as it exists, whatever bodies it is part of. */
export interface Compressor {
  /** The beginning of a gzip body that holds the pieces. They are held until it is there. */
  start(pieces: readonly Piece[]): Promise<GzipStart>;
}

/** A compressor that remembers what it deflated. */
export function createCompressor(): Compressor {
  const deflaters = Array.from({ length: DEFLATERS }, createDeflater);
  const deflated = new WeakMap<Piece, Promise<Deflated>>();
  const starts = new WeakMap<readonly Piece[], Promise<GzipStart>>();

  async function deflate(bytes: Uint8Array): Promise<Deflated> {
    const free = deflaters.reduce((one, other) => (other.pending() < one.pending() ? other : one));
    return {
      bytes: await free.deflate(bytes),
      checksum: crc32(bytes),
      shift: checksumShift(bytes.length),
      length: bytes.length,
    };
  }

  const deflateOnce = (piece: Piece) => remember(deflated, piece, () => deflate(piece.bytes));

  async function build(pieces: readonly Piece[]): Promise<GzipStart> {
    holdAll(pieces);
    try {
      let next = 0;
      const worker = async () => {
        while (next < pieces.length) await deflateOnce(pieces[next++]!);
      };
      await Promise.all(Array.from({ length: DEFLATERS }, worker));
      return join(await Promise.all(pieces.map(deflateOnce)));
    } finally {
      releaseAll(pieces);
    }
  }

  return { start: (pieces) => remember(starts, pieces, () => build(pieces)) };
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

function join(pieces: readonly Deflated[]): GzipStart {
  let checksum = 0;
  let length = 0;
  for (const piece of pieces) {
    checksum = combineChecksums(checksum, piece.checksum, piece.shift);
    length += piece.length;
  }
  return { chunks: [header, ...pieces.map(({ bytes }) => bytes)], checksum, length };
}

/** What was made of `key` before, or is being made; a failure is forgotten, so that the next one tries again. */
function remember<Key extends WeakKey, Value>(
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
