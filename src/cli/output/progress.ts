import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import { systemClock } from "../../platform/clock.ts";
import type { CommandContext } from "../context.ts";
import type { Output } from "./text.ts";

/** Waits that are shorter than this are not shown. */
const QUIET_PERIOD_MS: DurationMs = 2 * SECOND_MS;
/** Clears the line of a terminal that the cursor is on. */
export const CLEAR_LINE = "\r\u{1b}[K";

/**
 * Waits for `work`. After two seconds a terminal shows what the wait is for and how long it has lasted; the line is
 * cleared at the end.
 */
export async function withProgress<T>(
  label: string,
  work: Promise<T>,
  { err }: Pick<CommandContext, "err">,
  clock: Pick<Clock, "monotonic" | "sleep"> = systemClock,
): Promise<T> {
  if (err.isTTY !== true) return work;
  const done = new AbortController();
  const shown = showElapsed(label, err, clock, done.signal);
  return work.finally(() => {
    done.abort();
    return shown;
  });
}

async function showElapsed(label: string, err: Output, clock: Pick<Clock, "monotonic" | "sleep">, done: AbortSignal) {
  const beganAt = clock.monotonic();
  await clock.sleep(QUIET_PERIOD_MS, done);
  if (done.aborted) return;
  while (!done.aborted) {
    err.write(`${CLEAR_LINE}${label}: ${Math.round((clock.monotonic() - beganAt) / SECOND_MS)} s`);
    await clock.sleep(SECOND_MS, done);
  }
  err.write(CLEAR_LINE);
}

/** Interval in percent at which progress is written if a line can't be rewritten. */
const WRITTEN_PERCENT = 10;

/** Creates a progress display. A terminal rewrites one line; a file gets a line every 10%. */
export function showShare(label: string, { err }: Pick<CommandContext, "err">) {
  let shown = 0;
  return {
    /** Shows a share from 0 to 1. */
    show(share: number): void {
      const percent = Math.floor(share * 100);
      if (err.isTTY === true) err.write(`${CLEAR_LINE}${label}: ${percent}%`);
      else if (percent >= shown + WRITTEN_PERCENT) {
        shown = percent - (percent % WRITTEN_PERCENT);
        err.write(`${label}: ${shown}%\n`);
      }
    },
    end(): void {
      if (err.isTTY === true) err.write(CLEAR_LINE);
    },
  };
}
