const CAPACITY_MIN = 64;

/**
 * A queue of future events, ordered by time. It is a binary heap in typed arrays, which suits hundreds of thousands of
 * events. An event is a number with a meaning for the caller, such as a slot. Events with equal times are returned in
 * the order of their numbers, regardless of the order in which they were added, so that runs are reproducible.
 */
export type EventQueue = ReturnType<typeof createEventQueue>;

/** Creates an empty queue. Events are integers from 0 to 2^53. */
export function createEventQueue() {
  let times = new Float64Array(CAPACITY_MIN);
  let events = new Float64Array(CAPACITY_MIN);
  let count = 0;

  const before = (at: number, event: number, index: number): boolean =>
    at < times[index]! || (at === times[index]! && event < events[index]!);
  const put = (index: number, at: number, event: number): void => {
    times[index] = at;
    events[index] = event;
  };
  const grow = (): void => {
    const [oldTimes, oldEvents] = [times, events];
    times = new Float64Array(count * 2);
    events = new Float64Array(count * 2);
    times.set(oldTimes);
    events.set(oldEvents);
  };
  const sink = (index: number, at: number, event: number): void => {
    for (;;) {
      let child = 2 * index + 1;
      if (child >= count) break;
      if (child + 1 < count && before(times[child + 1]!, events[child + 1]!, child)) child += 1;
      if (before(at, event, child)) break;
      put(index, times[child]!, events[child]!);
      index = child;
    }
    put(index, at, event);
  };

  return {
    /** Returns the time of the earliest event, or Infinity if the queue is empty. */
    nextAt: () => (count === 0 ? Number.POSITIVE_INFINITY : times[0]!),
    /** Returns the earliest event. The queue must not be empty. */
    next: () => events[0]!,
    size: () => count,
    add(at: number, event: number): void {
      if (count === times.length) grow();
      let index = count;
      count += 1;
      while (index > 0) {
        const parent = (index - 1) >> 1;
        if (!before(at, event, parent)) break;
        put(index, times[parent]!, events[parent]!);
        index = parent;
      }
      put(index, at, event);
    },
    /** Removes the earliest event and returns it. Throws if the queue is empty. */
    take(): number {
      if (count === 0) throw new Error("the event queue is empty");
      const event = events[0]!;
      count -= 1;
      sink(0, times[count]!, events[count]!);
      return event;
    },
    /** Removes the events for which `keep` returns false, such as entries of events that were rescheduled. */
    prune(keep: (at: number, event: number) => boolean): void {
      let kept = 0;
      for (let index = 0; index < count; index += 1) {
        if (!keep(times[index]!, events[index]!)) continue;
        put(kept, times[index]!, events[index]!);
        kept += 1;
      }
      count = kept;
      for (let index = (count >> 1) - 1; index >= 0; index -= 1) sink(index, times[index]!, events[index]!);
    },
  };
}
