/**
 * Creates a function that runs one piece of work at a time, in the order of the calls. Each begins when the previous
 * one has ended or failed.
 */
export function createSequence(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
}
