/** Work that may be interrupted between any two steps. */
export type Steps<Result> = Generator<undefined, Result>;

/** Runs all steps at once, and returns their result. */
export function runAtOnce<Result>(steps: Iterator<unknown, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
