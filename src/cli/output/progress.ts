import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import { createSystemClock } from "../../platform/clock.ts";
import type { CommandContext, Output } from "../context.ts";

/** What is over sooner needs no word. */
const QUIET_PERIOD_MS: DurationMs = 2 * SECOND_MS;
const CLEAR_LINE = "\r\u{1b}[K";

/**
 * Waits for `work`. Where that takes longer than two seconds, a terminal is told what for and how long already; the line
 * is wiped at the end. Anything but a terminal is told nothing.
 */
export async function withProgress<T>(
  what: string,
  work: Promise<T>,
  { err }: Pick<CommandContext, "err">,
  clock: Pick<Clock, "monotonic" | "sleep"> = createSystemClock(),
): Promise<T> {
  if (err.isTTY !== true) return work;
  const done = new AbortController();
  const telling = showElapsed(what, err, clock, done.signal);
  try {
    return await work;
  } finally {
    done.abort();
    await telling;
  }
}

async function showElapsed(what: string, err: Output, clock: Pick<Clock, "monotonic" | "sleep">, done: AbortSignal) {
  const beganAt = clock.monotonic();
  await clock.sleep(QUIET_PERIOD_MS, done);
  if (done.aborted) return;
  while (!done.aborted) {
    err.write(`${CLEAR_LINE}${what}: ${Math.round((clock.monotonic() - beganAt) / SECOND_MS)} s`);
    await clock.sleep(SECOND_MS, done);
  }
  err.write(CLEAR_LINE);
}

/** Does what keeps the process busy; a terminal is told what before, for during it nobody can. `isLong`: as its size foretells. */
export function withStatusLine<T>(
  what: string,
  isLong: boolean,
  work: () => T,
  { err }: Pick<CommandContext, "err">,
): T {
  if (!isLong || err.isTTY !== true) return work();
  err.write(what);
  try {
    return work();
  } finally {
    err.write(CLEAR_LINE);
  }
}
