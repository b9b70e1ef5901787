/**
 * Creates a function that runs the work it is passed in sequence: each piece begins when the previous one has ended or
 * failed.
 */
export function createSequence(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
}
