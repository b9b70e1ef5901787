import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import { createSystemClock } from "../../platform/clock.ts";
import type { CommandContext, Output } from "../context.ts";

/** Shorter waits are not shown. */
const QUIET_PERIOD_MS: DurationMs = 2 * SECOND_MS;
const CLEAR_LINE = "\r\u{1b}[K";

/**
 * Waits for `work`. After two seconds a terminal shows what the wait is for and how long it has lasted; the line is cleared
 * at the end.
 */
export async function withProgress<T>(
  what: string,
  work: Promise<T>,
  { err }: Pick<CommandContext, "err">,
  clock: Pick<Clock, "monotonic" | "sleep"> = createSystemClock(),
): Promise<T> {
  if (err.isTTY !== true) return work;
  const done = new AbortController();
  const shown = showElapsed(what, err, clock, done.signal);
  try {
    return await work;
  } finally {
    done.abort();
    await shown;
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

/** Runs work that blocks the process. If `isLong`, a terminal shows a status line meanwhile. */
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
