import { setImmediate } from "node:timers/promises";
import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";

let last: Promise<void> = Promise.resolve();

/**
 * Waits for a turn of the event loop that no other caller shares. Callers continue in the order of their calls, so work
 * that is cut into short slices blocks the event loop for one slice at a time, however many tasks are under way.
 */
export function nextTurn(): Promise<void> {
  last = last.then(() => setImmediate());
  return last;
}

/** Longest time for which {@link runInSlices} blocks the event loop, unless a single step takes longer. */
const SLICE_MS: DurationMs = 1;

/** Runs all steps, in slices with a turn of the event loop between them. Returns the result of the steps. */
export async function runInSlices<Result>(
  steps: Iterator<unknown, Result>,
  clock: Pick<Clock, "monotonic">,
): Promise<Result> {
  let sliceEnd = clock.monotonic() + SLICE_MS;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (clock.monotonic() < sliceEnd) continue;
    await nextTurn();
    sliceEnd = clock.monotonic() + SLICE_MS;
  }
}
