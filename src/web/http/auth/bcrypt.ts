import { Worker } from "node:worker_threads";

/** Compares passwords with bcrypt hashes, one after the other and off the loop. */
export interface Bcrypt {
  /** Rejects where it could not be told. The hash is one of the schema's. */
  matches(password: string, hash: string): Promise<boolean>;
  close(): Promise<void>;
}

/** What the thread is asked. */
export interface BcryptJob {
  readonly id: number;
  readonly password: string;
  readonly hash: string;
}

/** What it answers. */
export interface BcryptResult {
  readonly id: number;
  readonly matches: boolean;
}

interface PendingJob {
  resolve(isSame: boolean): void;
  reject(error: Error): void;
}

/** A built package has the thread's file as JavaScript, a checkout as TypeScript. */
const WORKER_URL = new URL(`./bcrypt-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

/** It holds a few tables and one password. */
const HEAP_MB_MAX = 32;

/** Bcrypt in a thread that is started with the first question. */
export function createBcrypt(): Bcrypt {
  const pendingJobs = new Map<number, PendingJob>();
  let worker: Worker | null = null;
  let lastJobId = 0;

  function start(): Worker {
    const started = new Worker(WORKER_URL, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX } });
    const end = (error: Error) => {
      if (worker === started) worker = null;
      for (const { reject } of pendingJobs.values()) reject(error);
      pendingJobs.clear();
    };
    started.on("message", ({ id, matches: isSame }: BcryptResult) => {
      pendingJobs.get(id)?.resolve(isSame);
      pendingJobs.delete(id);
      // A process that has nothing else to do may end.
      if (pendingJobs.size === 0) started.unref();
    });
    started.on("error", end);
    started.on("exit", () => end(new Error("the thread for passwords has ended")));
    return started;
  }

  return {
    matches(password, hash) {
      worker ??= start();
      worker.ref();
      const id = lastJobId++;
      const question: BcryptJob = { id, password, hash };
      return new Promise((resolve, reject) => {
        pendingJobs.set(id, { resolve, reject });
        worker?.postMessage(question);
      });
    },
    async close() {
      await worker?.terminate();
    },
  };
}
