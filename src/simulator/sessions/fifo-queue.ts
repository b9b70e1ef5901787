/** First in, first out, within a fixed capacity: for delays that are the same for all, where no heap is needed. */
export interface FifoQueue {
  /** Throws when the queue is full: its owner promised never to put in more. */
  push(member: number): void;
  /** The first in; undefined when there is none. */
  first(): number | undefined;
  /** Removes the first in. */
  shift(): void;
}

/** An empty queue for at most `capacity` members. */
export function createFifoQueue(capacity: number): FifoQueue {
  const ring = new Int32Array(capacity);
  let head = 0;
  let count = 0;
  return {
    push(member) {
      if (count === capacity) throw new Error(`a queue of ${capacity} cannot take another member`);
      ring[(head + count) % capacity] = member;
      count += 1;
    },
    first: () => (count === 0 ? undefined : ring[head]),
    shift() {
      head = (head + 1) % capacity;
      count -= 1;
    },
  };
}
