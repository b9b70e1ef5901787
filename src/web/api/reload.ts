import type { Result } from "../../base/result.ts";

/** Reads the configuration anew and puts it in force; every error of it otherwise, one a line. */
export type Reload = () => Promise<Result<void, readonly string[]>>;

/**
 * One reload at a time. A request during a reload waits for the next one, which begins after it and so sees the files as they
 * are then; all who wait share it, so at most two are ever under way.
 */
export function serializeReloads(reload: Reload): Reload {
  type Running = ReturnType<Reload>;
  let running: Running | null = null;
  let next: Running | null = null;
  const start = (): Running => {
    next = null;
    running = reload().finally(() => {
      running = null;
    });
    return running;
  };
  return () => {
    if (next === null && running === null) return start();
    next ??= (running ?? Promise.resolve()).then(start, start);
    return next;
  };
}
