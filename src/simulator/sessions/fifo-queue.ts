/** A first-in first-out queue with a fixed capacity, for events with equal delays, which need no heap. */
export interface FifoQueue {
  /** Throws if the queue is full. */
  push(member: number): void;
  /** Returns the oldest member; undefined: the queue is empty. */
  first(): number | undefined;
  /** Removes the oldest member. */
  shift(): void;
}

/** Creates an empty queue. */
export function createFifoQueue(capacity: number): FifoQueue {
  const ring = new Int32Array(capacity);
  let head = 0;
  let count = 0;
  return {
    push(member) {
      if (count === capacity) throw new Error(`the queue is full: it has ${capacity} members`);
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
