const CAPACITY_MIN = 64;

/**
 * Future events by time: a binary heap in typed arrays, for hundreds of thousands of them. An event is a number that
 * its owner understands, such as a slot. Equal times come out in the order of those numbers, so that a run repeats
 * whatever the order in which they went in.
 */
export interface EventQueue {
  /** Time of the earliest event; Infinity when there is none. */
  nextAt(): number;
  add(at: number, event: number): void;
  /** Removes the earliest event and returns it. Throws when there is none. */
  take(): number;
  size(): number;
  /** Drops the events that `keep` refuses: for owners that reschedule, and leave what was overtaken behind. */
  prune(keep: (at: number, event: number) => boolean): void;
}

/** An empty agenda. `event` numbers are whole, from 0 to 2^53. */
export function createEventQueue(): EventQueue {
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
    nextAt: () => (count === 0 ? Number.POSITIVE_INFINITY : times[0]!),
    size: () => count,
    add(at, event) {
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
    take() {
      if (count === 0) throw new Error("an empty agenda has no event to take");
      const event = events[0]!;
      count -= 1;
      sink(0, times[count]!, events[count]!);
      return event;
    },
    prune(keep) {
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
