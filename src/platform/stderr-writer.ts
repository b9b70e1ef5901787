import { write, writeSync } from "node:fs";
import type { DurationMs } from "../base/duration.ts";

const STDERR = 2;
/** Maximum size of the buffer while stderr is blocked; further lines are dropped. */
const BUFFER_BYTES_MAX = 1_048_576;
/** Pause before another attempt to write to a full pipe. */
const RETRY_MS: DurationMs = 100;
/** The same pause at exit, which blocks the process. */
const EXIT_RETRY_MS: DurationMs = 10;
/** Time for the last lines at exit. With it, the daemon stops within 10 s even if nothing reads its stderr. */
const EXIT_MS_MAX: DurationMs = 200;

/**
 * Writes lines to stderr, asynchronously so that a full pipe does not block the process. At exit, it writes the rest
 * synchronously. Lines that can't be written, because the disk is full or the pipe is closed, are lost.
 */
export class StderrWriter {
  #waiting: Buffer[] = [];
  /** Bytes that wait or are being written. */
  #bytes = 0;
  #isWriting = false;

  constructor() {
    process.on("exit", () => this.#writeAtExit());
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#bytes + bytes.length > BUFFER_BYTES_MAX) return;
    this.#bytes += bytes.length;
    this.#waiting.push(bytes);
    if (!this.#isWriting) this.#writeWaiting();
  }

  #writeWaiting(): void {
    this.#isWriting = this.#waiting.length > 0;
    if (!this.#isWriting) return;
    const chunk = Buffer.concat(this.#waiting);
    this.#waiting = [];
    write(STDERR, chunk, (error, written) => {
      const isFull = isPipeFull(error);
      const done = isFull ? 0 : error === null ? written : chunk.length;
      this.#bytes -= done;
      if (done < chunk.length) this.#waiting.unshift(chunk.subarray(done));
      if (isFull) setTimeout(() => this.#writeWaiting(), RETRY_MS).unref();
      else this.#writeWaiting();
    });
  }

  #writeAtExit(): void {
    const endsAt = performance.now() + EXIT_MS_MAX;
    let rest = Buffer.concat(this.#waiting);
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(STDERR, rest));
      } catch (error) {
        if (!isPipeFull(error) || performance.now() > endsAt) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, EXIT_RETRY_MS);
      }
    }
  }
}

const isPipeFull = (error: unknown): boolean => (error as NodeJS.ErrnoException | null)?.code === "EAGAIN";
