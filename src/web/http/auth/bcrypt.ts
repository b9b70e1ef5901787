import { Worker } from "node:worker_threads";

/** Compares passwords with bcrypt hashes, one after the other and off the loop. */
export interface Bcrypt {
  /** Rejects where it could not be told. The hash is one of the schema's. */
  isSame(password: string, hash: string): Promise<boolean>;
  close(): Promise<void>;
}

/** What the thread is asked. */
export interface BcryptQuestion {
  readonly id: number;
  readonly password: string;
  readonly hash: string;
}

/** What it answers. */
export interface BcryptAnswer {
  readonly id: number;
  readonly isSame: boolean;
}

interface Waiting {
  resolve(isSame: boolean): void;
  reject(error: Error): void;
}

/** A built package has the thread's file as JavaScript, a checkout as TypeScript. */
const WORKER = new URL(`./bcrypt-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

/** It holds a few tables and one password. */
const HEAP_MB_MAX = 32;

/** Bcrypt in a thread that is started with the first question. */
export function createBcrypt(): Bcrypt {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | null = null;
  let asked = 0;

  function start(): Worker {
    const started = new Worker(WORKER, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX } });
    const end = (error: Error) => {
      if (worker === started) worker = null;
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    };
    started.on("message", ({ id, isSame }: BcryptAnswer) => {
      waiting.get(id)?.resolve(isSame);
      waiting.delete(id);
      // A process that has nothing else to do may end.
      if (waiting.size === 0) started.unref();
    });
    started.on("error", end);
    started.on("exit", () => end(new Error("the thread for passwords has ended")));
    return started;
  }

  return {
    isSame(password, hash) {
      worker ??= start();
      worker.ref();
      const id = asked++;
      const question: BcryptQuestion = { id, password, hash };
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        worker?.postMessage(question);
      });
    },
    async close() {
      await worker?.terminate();
    },
  };
}
