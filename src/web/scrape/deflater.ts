import { constants, createDeflateRaw, type DeflateRaw } from "node:zlib";

/** Takes half the time of level 6 for slightly more bytes. Scrapers are usually near. */
export const DEFLATE_LEVEL = 1;
const OUTPUT_BYTES = 65_536;

/**
 * Creates a deflater of byte runs, one at a time in Node's thread pool. It uses one zlib stream for all runs: a new one for
 * each would allocate 256 KiB a run.
 */
export function createDeflater() {
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
    /** Returns deflate blocks that can be concatenated: they end on a whole byte and refer to no earlier bytes. */
    deflate(bytes: Uint8Array): Promise<Uint8Array> {
      pending++;
      const done = queue.then(() => run(bytes)).finally(() => pending--);
      queue = done.catch(() => undefined);
      return done;
    },
    /** Number of unfinished runs. */
    pending: () => pending,
  };
}

/** A full flush after each write resets the dictionary and ends on a whole byte. */
const openStream = (): DeflateRaw =>
  createDeflateRaw({ level: DEFLATE_LEVEL, flush: constants.Z_FULL_FLUSH, chunkSize: OUTPUT_BYTES });
