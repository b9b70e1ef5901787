import { constants, createDeflateRaw, type DeflateRaw } from "node:zlib";

/** Deflates runs of bytes, one at a time and off the loop, so that any of them may be followed by any other. */
export interface Deflater {
  /** The deflated bytes: whole, without an end, and without reference to what was deflated before. */
  deflate(bytes: Uint8Array): Promise<Uint8Array>;
  /** Runs that are not done yet. */
  pending(): number;
}

/** Takes half the time of level 6 for some more bytes: scrapers sit near. */
export const DEFLATE_LEVEL = 1;
const OUTPUT_BYTES = 65_536;

/** One zlib stream for all runs: its quarter of a megabyte a run would keep the garbage collector busy. */
export function createDeflater(): Deflater {
  let stream = openStream();
  let queue: Promise<unknown> = Promise.resolve();
  let pending = 0;

  function run(bytes: Uint8Array): Promise<Uint8Array> {
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
        resolve(Buffer.concat(parts));
      });
    });
  }

  return {
    deflate(bytes) {
      pending++;
      const done = queue.then(() => run(bytes)).finally(() => pending--);
      queue = done.catch(() => undefined);
      return done;
    },
    pending: () => pending,
  };
}

/** A full flush after each write forgets what came before, and ends on a whole byte. */
const openStream = (): DeflateRaw =>
  createDeflateRaw({ level: DEFLATE_LEVEL, flush: constants.Z_FULL_FLUSH, chunkSize: OUTPUT_BYTES });
