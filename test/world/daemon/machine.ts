import type { DurationMs } from "../../../src/base/duration.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";
import type { VirtualClock } from "../../../src/simulator/clock.ts";

/** The machine of the daemon, which may be suspended while the service continues. */
export interface Machine {
  /** Suspends the machine. Has no effect while it is suspended. */
  suspend(ms: DurationMs): void;
  /** Ends a suspension early. */
  resume(): void;
  isSuspended(): boolean;
  /** When the last suspension ended, on the clock of the simulation, or -Infinity if there was none. */
  resumedAt(): MonotonicMs;
  /** The monotonic clock of the machine, which stands still while it is suspended. */
  monotonic(): MonotonicMs;
  /** Sleeps on that clock. */
  sleep(ms: DurationMs, signal?: AbortSignal): Promise<void>;
  /** Waits until the machine runs. */
  running(): Promise<void>;
}

/** A shorter sleep may not advance the clock, because of rounding. */
const TICK_MS: DurationMs = 0.001;

/** Creates a machine that runs, on the clock of the simulation. */
export function createMachine(clock: VirtualClock): Machine {
  let pastMs: DurationMs = 0;
  let resumedAt = Number.NEGATIVE_INFINITY;
  let suspension: { readonly from: MonotonicMs; readonly wake: AbortController } | null = null;
  const monotonic = (): MonotonicMs => (suspension?.from ?? clock.monotonic()) - pastMs;

  async function running(): Promise<void> {
    while (suspension !== null) await clock.sleep(Number.POSITIVE_INFINITY, suspension.wake.signal);
  }

  function resume(): void {
    if (suspension === null) return;
    const { from, wake } = suspension;
    resumedAt = clock.monotonic();
    pastMs += resumedAt - from;
    suspension = null;
    wake.abort();
  }

  return {
    suspend(ms) {
      if (suspension !== null) return;
      const wake = new AbortController();
      suspension = { from: clock.monotonic(), wake };
      void clock.sleep(ms, wake.signal).then(() => (wake.signal.aborted ? undefined : resume()));
    },
    resume,
    isSuspended: () => suspension !== null,
    resumedAt: () => resumedAt,
    monotonic,
    async sleep(ms, signal) {
      const end = monotonic() + ms;
      const suspendedMs = pastMs;
      await clock.sleep(ms, signal);
      while (suspension !== null || pastMs !== suspendedMs) {
        await running();
        const rest = end - monotonic();
        if (rest < TICK_MS || signal?.aborted === true) return;
        await clock.sleep(rest, signal);
      }
    },
    running,
  };
}
