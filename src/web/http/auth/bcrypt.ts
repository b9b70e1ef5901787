import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Compares a password with a bcrypt hash. Rejects if the comparison can't be run. */
export type BcryptMatches = (password: string, hash: string) => Promise<boolean>;

/** A built package has the worker as JavaScript, a checkout as TypeScript. */
const WORKER_URL = new URL(`./bcrypt-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

const HEAP_MB_MAX = 32;

/** Creates a comparison that runs in a worker thread, one at a time: a hash takes a tenth of a second and more. */
export function createBcryptMatches(): BcryptMatches {
  let last: Promise<unknown> = Promise.resolve();
  return (password, hash) => {
    const result = last.then(() => compare(password, hash));
    last = result.catch(() => undefined);
    return result;
  };
}

async function compare(password: string, hash: string): Promise<boolean> {
  const worker = new Worker(WORKER_URL, {
    workerData: { password, hash },
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
  });
  // It doesn't keep a process that is shutting down alive.
  worker.unref();
  const exited = once(worker, "exit").then(() => Promise.reject(new Error("the password thread ended early")));
  const [matches] = (await Promise.race([once(worker, "message"), exited])) as [boolean];
  return matches;
}
