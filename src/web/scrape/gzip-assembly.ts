import { constants, crc32, createDeflateRaw, type DeflateRaw, deflateRawSync } from "node:zlib";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Chunk, RenderSource } from "../../metrics/render/chunk.ts";
import { LineWriter } from "../../metrics/render/line-writer.ts";
import type { NetworkExposition } from "../../metrics/render/renderer.ts";
import type { Format } from "../../metrics/text-format.ts";
import type { Clock } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createSequence } from "../../platform/sequence.ts";

/** A deflated chunk, and its effect on the checksum of a body. */
interface DeflatedChunk {
  readonly parts: readonly Uint8Array[];
  readonly checksum: number;
  readonly shift: number;
  /** Bytes before deflation. */
  readonly length: number;
}

/** The beginning of a gzip member, which successive scrapes share. */
interface GzipStart {
  readonly chunks: readonly Uint8Array[];
  readonly checksum: number;
  readonly length: number;
}

/**
 * This level takes half the time of level 6. The output is slightly larger, which matters little because scrapers are
 * usually nearby.
 */
const DEFLATE_LEVEL = 1;
/** Lines repeat those just before them. Searching only 4 KiB takes a fifth less time than 32 KiB, and the output is 3% smaller. */
const WINDOW_BITS = 12;
const OUTPUT_BYTES = 65_536;

// Magic number, method deflate, no flags, no modification time, fastest level, unknown system (RFC 1952, section 2.3).
const GZIP_HEADER = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255);

/**
 * Creates a function that returns the beginning of a gzip body with the chunks of an exposition in a format. It caches
 * deflated chunks for as long as the chunks exist.
 */
export function createCompressor() {
  const deflate = createDeflater();
  const deflated = new WeakMap<Chunk, Promise<DeflatedChunk>>();
  const starts = new WeakMap<readonly Chunk[], Promise<GzipStart>>();

  async function build({ chunks, source }: NetworkExposition, format: Format): Promise<GzipStart> {
    const deflateOnce = (chunk: Chunk) => memoize(deflated, chunk, () => deflate(chunk, source));
    return join(await Promise.all(chunks[format].map(deflateOnce)));
  }

  return (exposition: NetworkExposition, format: Format): Promise<GzipStart> =>
    memoize(starts, exposition.chunks[format], () => build(exposition, format));
}

/** Expositions are compressed ahead of scrapes if gzip was requested within this time. */
const REQUESTED_MS_MAX: DurationMs = 10 * MINUTE_MS;
/** After a compression, the next one ahead of a scrape waits this many times as long as the last one took. */
const PAUSE_FACTOR = 19;
/** Longest such pause. */
const PAUSE_MS_MAX: DurationMs = 5 * SECOND_MS;
/** A scrape waits for the compression of the current exposition if the last one took no longer than this, or is too old. */
const WAIT_MS_MAX: DurationMs = 50;
/** Otherwise, the scrape gets a compressed exposition up to this age, which allows for the pause and the next compression. */
const AGE_MS_MAX: DurationMs = 10 * SECOND_MS;

interface CompressedExposition {
  readonly start: GzipStart;
  /** When its compression began. */
  readonly at: MonotonicMs;
  readonly tookMs: DurationMs;
}

/**
 * Creates a cache of compressed expositions, which compresses them ahead of the scrapes that are likely to request them.
 * A large fleet is published every few seconds, and compressing each snapshot would take more CPU time than everything
 * else. So each compression is followed by a pause of 19 times its duration, at most five seconds. In between, a scrape
 * gets the last compressed exposition, unless the last compression was quick.
 */
export function createCompressedExpositions(clock: Pick<Clock, "monotonic">) {
  const startGzip = createCompressor();
  let latest = new Map<Format, CompressedExposition>();
  let requestedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let requestedFormat: Format = "text";
  let pausedUntil: MonotonicMs = Number.NEGATIVE_INFINITY;

  async function compress(exposition: NetworkExposition, format: Format): Promise<GzipStart> {
    const target = latest;
    const at = clock.monotonic();
    const start = await startGzip(exposition, format);
    const now = clock.monotonic();
    target.set(format, { start, at, tookMs: now - at });
    pausedUntil = now + Math.min(PAUSE_MS_MAX, PAUSE_FACTOR * (now - at));
    return start;
  }

  return {
    /**
     * Compresses a new exposition if a scrape is likely to request it, unless compression is paused. If that fails, the
     * next scrape tries again.
     */
    async prepare(exposition: NetworkExposition): Promise<void> {
      const now = clock.monotonic();
      if (now - requestedAt <= REQUESTED_MS_MAX && now >= pausedUntil) await compress(exposition, requestedFormat);
    },
    /** Returns the beginning of a gzip body for a scrape, of `exposition` or of one that was current up to 10 s ago. */
    async startOf(exposition: NetworkExposition, format: Format): Promise<GzipStart> {
      const now = clock.monotonic();
      requestedAt = now;
      requestedFormat = format;
      const found = latest.get(format);
      const isUsed = found !== undefined && found.tookMs > WAIT_MS_MAX && now - found.at <= AGE_MS_MAX;
      return isUsed ? found.start : compress(exposition, format);
    },
    /** Forgets all compressed expositions, including one that is being compressed. */
    clear() {
      latest = new Map();
    },
  };
}

/**
 * Returns the whole body as one gzip member, because some clients read only the first. The rest is deflated
 * synchronously, which for some kilobytes takes less time than handing it to a thread.
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
  return { chunks: [GZIP_HEADER, ...chunks.flatMap(({ parts }) => parts)], checksum, length };
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

/**
 * Creates a deflater, which renders one chunk at a time, and deflates it in Node's thread pool. A second deflater would
 * save a fifth of the time, but on a machine with two cores it would slow down the event loop. The returned deflate
 * blocks can be concatenated, because they end on a whole byte and refer to no earlier bytes. The deflater reuses one
 * zlib stream: creating one for each chunk would allocate 256 KiB each time, which takes a quarter more CPU time.
 */
function createDeflater() {
  let stream = openStream();
  const inSequence = createSequence();
  const writer = new LineWriter();

  function run(bytes: Uint8Array): Promise<readonly Uint8Array[]> {
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      const collect = (part: Buffer) => parts.push(part);
      const fail = (error: Error) => {
        stream = openStream();
        reject(error);
      };
      stream.on("data", collect).once("error", fail);
      stream.write(bytes, (error) => {
        if (error) return;
        while (stream.readableLength > 0) stream.read();
        stream.off("data", collect).off("error", fail);
        resolve(parts);
      });
    });
  }

  async function deflate(chunk: Chunk, source: RenderSource | null): Promise<DeflatedChunk> {
    const bytes = chunk.render(source!, writer);
    const { length } = bytes;
    return { checksum: crc32(bytes), shift: checksumShift(length), length, parts: await run(bytes) };
  }

  return (chunk: Chunk, source: RenderSource | null) => inSequence(() => deflate(chunk, source));
}

/** A full flush after each write resets the dictionary and ends on a whole byte. */
const openStream = (): DeflateRaw =>
  createDeflateRaw({
    level: DEFLATE_LEVEL,
    windowBits: WINDOW_BITS,
    flush: constants.Z_FULL_FLUSH,
    chunkSize: OUTPUT_BYTES,
  });

/** The polynomial of CRC-32 in gzip's form: bits reflected, without the term x^32 (RFC 1952, section 8). */
const POLYNOMIAL = 0xed_b8_83_20;
/** The polynomial 1, reflected. */
const POLYNOMIAL_ONE = 0x80_00_00_00;
const LENGTH_BITS_MAX = 32;

/** Returns the product of two polynomials modulo that of CRC-32. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= b;
    b = b & 1 ? (b >>> 1) ^ POLYNOMIAL : b >>> 1;
  }
  return product >>> 0;
}

/** x to the power of 8n for n = 1, 2, 4, 8 …: the effect of n zero bytes on a checksum. */
const BYTE_SHIFTS = powersOfByte();

function powersOfByte(): readonly number[] {
  // With reflected bits, x to the power of n is n bits right of 1.
  const powers = [POLYNOMIAL_ONE >>> 8];
  while (powers.length < LENGTH_BITS_MAX) powers.push(multiply(powers.at(-1)!, powers.at(-1)!));
  return powers;
}

/** Returns the operator for {@link combineChecksums} that appends `length` bytes, fewer than 2^32. */
export function checksumShift(length: number): number {
  let shift = POLYNOMIAL_ONE;
  for (let bit = 0; bit < LENGTH_BITS_MAX; bit++) {
    if ((length >>> bit) & 1) shift = multiply(shift, BYTE_SHIFTS[bit]!);
  }
  return shift;
}

/**
 * Returns the CRC-32 of two concatenated byte sequences, from the CRC-32 of each and the shift of the second one's
 * length. The method is that of zlib's crc32_combine_op (Mark Adler).
 */
export const combineChecksums = (first: number, second: number, secondShift: number): number =>
  (multiply(secondShift, first) ^ second) >>> 0;
