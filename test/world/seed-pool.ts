import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { MINUTE_MS } from "../../src/base/duration.ts";
import type { SeedResult, SeedTask } from "./seed-task.ts";

/** Processes that run seeds. */
export interface SeedPool {
  /** Runs a task as soon as a process is free. Fails where the process ends before, or takes too long. */
  run(task: SeedTask): Promise<SeedResult>;
  close(): void;
}

/** A run that takes longer hangs. */
const RUN_MS_MAX = 20 * MINUTE_MS;

/** Starts processes. `folder`: where the world test lies, of this tree or of a changed copy of it. */
export function createSeedPool(workers: number, folder: string = import.meta.dirname): SeedPool {
  const idle: ChildProcess[] = [];
  const waiting: ((child: ChildProcess) => void)[] = [];
  let started = 0;

  const start = (): ChildProcess => {
    started++;
    return fork(join(folder, "seed-process.ts"), { serialization: "advanced" });
  };

  function take(): Promise<ChildProcess> {
    const free = idle.pop();
    if (free !== undefined) return Promise.resolve(free);
    if (started < workers) return Promise.resolve(start());
    return new Promise((resolve) => waiting.push(resolve));
  }

  function giveBack(child: ChildProcess): void {
    const next = waiting.shift();
    if (next === undefined) idle.push(child);
    else next(child);
  }

  return {
    async run(task) {
      const child = await take();
      const done = new AbortController();
      const hanging = wait(RUN_MS_MAX, null, { signal: done.signal }).catch(() => null);
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
      void hanging.then(() => {
        if (!done.signal.aborted) child.kill("SIGKILL");
      });
      try {
        const result = await answer;
        giveBack(child);
        return result;
      } catch (error) {
        giveBack(fork(join(folder, "seed-process.ts"), { serialization: "advanced" }));
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
