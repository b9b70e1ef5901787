import type { DurationMs } from "../base/duration.ts";
import { createEventQueue } from "../base/event-queue.ts";
import type { Clock } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** A clock that advances only on request. */
export interface VirtualClock extends Clock {
  /**
   * Advances time by `ms` and wakes the sleepers that are due, in the order of their times and, for equal times, of
   * their calls. All promises and `setImmediate` callbacks settle before the next sleeper wakes, so that everything a
   * sleeper does next happens at its wake-up time. Throws if another call is in progress.
   */
  advance(ms: DurationMs): Promise<void>;
  /** Returns the number of sleepers that have not been woken yet. */
  sleeperCount(): number;
  /** Steps only the wall clock, as NTP does; backwards if negative. */
  stepWallClock(epochDeltaMs: number): void;
}

/** Rounds of `setImmediate` after which an endless loop is assumed. A large rendering takes hundreds. */
const SETTLE_ROUNDS_MAX = 1_000_000;

/** Queue length above which entries of sleepers that have already been woken are removed, if they are the majority. */
const STALE_ENTRIES_MAX = 1_024;

/** Creates a clock that shows `startEpochMs` until it is advanced. Its monotonic time starts at 0. */
export function createVirtualClock(startEpochMs: EpochMs): VirtualClock {
  const eventQueue = createEventQueue();
  const sleepers = new Map<number, () => void>();
  let elapsed: MonotonicMs = 0;
  let wallOffset = startEpochMs;
  let nextId = 0;
  let advancing = false;

  const wake = (id: number): void => {
    const resolve = sleepers.get(id);
    sleepers.delete(id);
    resolve?.();
  };

  const sleep = (ms: DurationMs, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const id = nextId;
      nextId += 1;
      const onAbort = (): void => {
        wake(id);
        if (eventQueue.size() > STALE_ENTRIES_MAX && eventQueue.size() > 2 * sleepers.size) {
          eventQueue.prune((_, event) => sleepers.has(event));
        }
      };
      sleepers.set(id, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
      eventQueue.add(elapsed + Math.max(0, ms), id);
    });

  const advance = async (ms: DurationMs): Promise<void> => {
    if (advancing) throw new Error("the virtual clock is already being advanced by another caller");
    advancing = true;
    try {
      const target = elapsed + ms;
      await drainEventLoop();
      while (eventQueue.nextAt() <= target) {
        const at = eventQueue.nextAt();
        const id = eventQueue.take();
        if (!sleepers.has(id)) continue;
        elapsed = at;
        wake(id);
        await drainEventLoop();
      }
      elapsed = target;
    } finally {
      advancing = false;
    }
  };

  return {
    now: () => wallOffset + elapsed,
    monotonic: () => elapsed,
    sleep,
    advance,
    sleeperCount: () => sleepers.size,
    stepWallClock: (epochDeltaMs) => {
      wallOffset += epochDeltaMs;
    },
  };
}

/** Creates a clock that starts at the time of `base` and runs `speed` times as fast. */
export function createScaledClock(base: Clock, speed: number): Clock {
  const [startEpochMs, startMonotonicMs] = [base.now(), base.monotonic()];
  return {
    now: () => startEpochMs + (base.now() - startEpochMs) * speed,
    monotonic: () => startMonotonicMs + (base.monotonic() - startMonotonicMs) * speed,
    sleep: (ms, signal) => base.sleep(ms / speed, signal),
  };
}

const nextImmediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function drainEventLoop(): Promise<void> {
  // All promise jobs run before the next immediate. The runtime also counts immediates of other code.
  for (let round = 0; round < SETTLE_ROUNDS_MAX; round += 1) {
    await nextImmediate();
    if (!process.getActiveResourcesInfo().includes("Immediate")) return;
  }
  throw new Error(`work scheduled by setImmediate did not settle within ${SETTLE_ROUNDS_MAX} rounds`);
}
