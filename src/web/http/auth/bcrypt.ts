import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { createSequence } from "../../../platform/sequence.ts";

/** Compares a password with a bcrypt hash. Rejects if the comparison can't be run. */
export type BcryptMatches = (password: string, hash: string) => Promise<boolean>;

/** A built package has the worker as JavaScript, a checkout as TypeScript. */
const WORKER_URL = new URL(`./bcrypt-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

const HEAP_MB_MAX = 32;

/** Creates a comparison that runs in a worker thread, one at a time. A hash takes 0.1 s or more. */
export function createBcryptMatches(): BcryptMatches {
  let worker: Worker | null = null;
  const inSequence = createSequence();

  function startWorker(): Worker {
    const started = new Worker(WORKER_URL, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX } });
    // The worker doesn't keep the process alive during shutdown.
    started.unref();
    started.once("exit", () => {
      worker = null;
    });
    return started;
  }

  return (password, hash) =>
    inSequence(() => {
      worker ??= startWorker();
      return compareIn(worker, password, hash);
    });
}

async function compareIn(worker: Worker, password: string, hash: string): Promise<boolean> {
  const settled = new AbortController();
  const { signal } = settled;
  const exit = once(worker, "exit", { signal }).then(() => Promise.reject(new Error("the password thread has ended")));
  worker.postMessage({ password, hash });
  const [matches] = (await Promise.race([once(worker, "message", { signal }), exit]).finally(() =>
    settled.abort(),
  )) as [boolean];
  return matches;
}
