import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { createEventQueue } from "./event-queue.ts";

/** A clock that only advances on request. */
export interface VirtualClock extends Clock {
  /**
   * Moves time on by `ms`, waking the sleepers that fall due in the order of their times (and of their falling asleep,
   * where those are equal). Between two of them all promise and `setImmediate` work settles, so that what a sleeper
   * does next, sleeping again included, happens at its own instant. Throws if it is running already.
   */
  advance(ms: DurationMs): Promise<void>;
  /** Sleepers not yet woken. */
  sleeperCount(): number;
  /** Moves the wall clock alone, as a person or NTP would; negative: back. */
  stepWallClock(epochDeltaMs: number): void;
}

/** Rounds of `setImmediate` that one instant may take: a renderer's slices are hundreds, a loop without end is not. */
const SETTLE_ROUNDS_MAX = 1_000_000;

/** Stale entries of woken sleepers are cleared once there are this many, and more than there are sleepers. */
const STALE_ENTRIES_MAX = 1_024;

/** A clock that stands at `startEpochMs` until it is advanced; its monotonic time begins at 0. */
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
    if (advancing) throw new Error("the virtual clock is being advanced already: one driver at a time");
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

/** `base` made `speed` times as fast from now on: a demo's minute in a second at 60. Starts at the time of `base`. */
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
  // Promise jobs run out before each immediate; immediates are counted by the runtime, so those of others show.
  for (let round = 0; round < SETTLE_ROUNDS_MAX; round += 1) {
    await nextImmediate();
    if (!process.getActiveResourcesInfo().includes("Immediate")) return;
  }
  throw new Error(`work scheduled by setImmediate did not settle within ${SETTLE_ROUNDS_MAX} rounds`);
}
