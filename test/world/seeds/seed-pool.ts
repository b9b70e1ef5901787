import { type ChildProcess, fork } from "node:child_process";
import { join, relative } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { SeedResult, SeedTask } from "./seed-task.ts";

/** A pool of processes that run seeds. */
export interface SeedPool {
  /** Runs a task in the next free process. Rejects if the process exits or exceeds the time limit. */
  run(task: SeedTask): Promise<SeedResult>;
  close(): void;
}

/** A run that takes longer is killed. */
const RUN_MS_MAX = 20 * MINUTE_MS;

const ROOT = join(import.meta.dirname, "../../..");

/**
 * Creates a pool that starts up to `workers` processes on demand. `root` is the project's folder, or an edited copy of
 * it.
 */
export function createSeedPool(workers: number, root: string = ROOT): SeedPool {
  const idle: ChildProcess[] = [];
  const waiting: ((child: ChildProcess) => void)[] = [];
  let started = 0;

  const start = (): ChildProcess =>
    fork(join(root, relative(ROOT, import.meta.dirname), "seed-process.ts"), { serialization: "advanced" });

  function acquire(): Promise<ChildProcess> {
    const child = idle.pop();
    if (child !== undefined) return Promise.resolve(child);
    if (started++ < workers) return Promise.resolve(start());
    return new Promise((resolve) => waiting.push(resolve));
  }

  function release(child: ChildProcess): void {
    const next = waiting.shift();
    if (next === undefined) idle.push(child);
    else next(child);
  }

  return {
    async run(task) {
      const child = await acquire();
      const done = new AbortController();
      const timer = wait(RUN_MS_MAX, null, { signal: done.signal }).catch(() => null);
      const answer = new Promise<SeedResult>((resolve, reject) => {
        const onMessage = (result: SeedResult) => {
          child.off("exit", onExit);
          resolve(result);
        };
        const onExit = (code: number | null, signal: string | null) => {
          child.off("message", onMessage);
          reject(new Error(`seed ${task.seed}: the process ended with ${code ?? signal}`));
        };
        child.once("message", onMessage);
        child.once("exit", onExit);
        child.send(task);
      });
      void timer.then(() => {
        if (!done.signal.aborted) child.kill("SIGKILL");
      });
      try {
        const result = await answer;
        release(child);
        return result;
      } catch (error) {
        release(start());
        throw error;
      } finally {
        done.abort();
      }
    },
    close() {
      for (const child of idle) child.kill();
    },
  };
}
