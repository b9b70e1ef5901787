/** Work that may be interrupted between any two steps. */
export type Steps<Result> = Generator<undefined, Result>;

/** Runs all steps without interruption, and returns their result. */
export function runAtOnce<Result>(steps: Iterator<unknown, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Number of items per step. An item takes about a microsecond. */
const ITEMS_PER_STEP = 200;

/** Returns the steps that do `work` for each item, in order. Items that are added meanwhile are included. */
export function* eachInSteps<Item>(items: Iterable<Item>, work: (item: Item) => void): Steps<void> {
  let done = 0;
  for (const item of items) {
    work(item);
    done++;
    if (done % ITEMS_PER_STEP === 0) yield;
  }
}
