import type { DurationMs } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { MonotonicMs } from "../../model/time.ts";

/**
 * Minimum number of windows for which external calls are remembered, since they may recur after a few quiet windows.
 */
const WINDOWS_REMEMBERED_MIN = 5;
/** Users who pause are remembered for this many times their longest pause. */
const PAUSES_COVERED = 1.5;
/** Maximum number of windows for which external calls are remembered. Rarer calls have to fit into the reserve. */
const WINDOWS_REMEMBERED_MAX = 30;
/** Number of windows in which pauses are searched for. */
const STORED_WINDOWS_MAX = 60;
/** A window with fewer calls than this share of a later one is part of a pause before it. */
const PAUSE_SHARE: Share = 0.5;
/** Margin on top of the observed calls: a share of them, and a number of calls. */
const MARGIN: Share = 0.1;
const MARGIN_CALLS = 1;
/** A rise above all remembered windows is extrapolated from the last of this many parts of a window. */
const TREND_PARTS = 4;
/** Number of slices of a window for which counts are kept for the extrapolation. */
const SLICES = 60;

interface WindowMaximum {
  readonly index: number;
  most: number;
}

/** Predicts from the external calls of recent windows how many to expect in the next one. */
export class UsageForecast {
  #windows: WindowMaximum[] = [];
  /** Maximum of all windows. */
  #highest = 0;
  #remembered = WINDOWS_REMEMBERED_MIN;
  #rise = { calls: 0, until: Number.NEGATIVE_INFINITY };
  #windowMs: DurationMs = 1;
  readonly #rate = new CallRate();

  /** Records the calls so far in the current window, and whether they are rising. */
  record(calls: number, windowMs: DurationMs, at: MonotonicMs): void {
    this.recordWindow(calls, windowMs, at);
    const { index } = this.#windows.at(-1)!;
    const previousMost = this.#mostRemembered(index, index);
    const extrapolated = this.#rate.extrapolate(calls, windowMs, at);
    if (calls > addMargin(previousMost) && extrapolated > calls) {
      this.#rise = { calls: extrapolated, until: at + windowMs / TREND_PARTS };
    } else if (at >= this.#rise.until) this.#rise = { calls: 0, until: at };
  }

  /** Records the calls of a window up to `at`, which say nothing about their rate. */
  recordWindow(calls: number, windowMs: DurationMs, at: MonotonicMs): void {
    this.#windowMs = windowMs;
    const index = Math.floor(at / windowMs);
    if (this.#windows.at(-1)?.index !== index) {
      this.#windows = this.#windows.filter((window) => window.index > index - STORED_WINDOWS_MAX);
      this.#highest = mostOf(this.#windows);
      this.#windows.push({ index, most: 0 });
      this.#remembered = rememberedWindows(this.#windows);
    }
    const current = this.#windows.at(-1)!;
    if (calls <= current.most) return;
    current.most = calls;
    this.#highest = Math.max(this.#highest, calls);
    this.#remembered = rememberedWindows(this.#windows);
  }

  /** Returns the calls to expect in a window, 0 if none. */
  expected(now: MonotonicMs): number {
    if (this.#highest < 1 && this.#rise.calls < 1) return 0;
    const index = Math.floor(now / this.#windowMs);
    const observed = this.#mostRemembered(index, index + 1);
    // A rise lasts until a later count shows its end, since others continue while we wait, but at most for a window.
    const most = now < this.#rise.until + this.#windowMs ? Math.max(observed, this.#rise.calls) : observed;
    return most < 1 ? 0 : Math.ceil(addMargin(most));
  }

  /** Maximum of the windows before `end` that are still remembered in the window `index`. */
  #mostRemembered(index: number, end: number): number {
    return mostOf(this.#windows.filter((window) => window.index >= index - this.#remembered && window.index < end));
  }
}

const mostOf = (windows: readonly WindowMaximum[]): number =>
  windows.reduce((most, window) => Math.max(most, window.most), 0);

const addMargin = (calls: number): number => calls * (1 + MARGIN) + MARGIN_CALLS;

/** Returns the number of windows for which to remember external calls, by the longest pause between them. */
function rememberedWindows(windows: readonly WindowMaximum[]): number {
  if (mostOf(windows) < 1) return WINDOWS_REMEMBERED_MIN;
  const pauses = windows.map(({ index, most }, position) => {
    const previous = windows.slice(0, position).findLast((window) => window.most >= Math.max(1, most * PAUSE_SHARE));
    return previous === undefined || most < 1 ? 0 : index - previous.index;
  });
  const longest = Math.ceil(PAUSES_COVERED * Math.max(0, ...pauses));
  return Math.min(WINDOWS_REMEMBERED_MAX, Math.max(WINDOWS_REMEMBERED_MIN, longest));
}

/** Growth rate of a count. */
class CallRate {
  /** The minimum count of each slice in the last part of a window, and of the slice before them. */
  #slices: { readonly index: number; readonly at: MonotonicMs; least: number }[] = [];

  /** Returns the count after a whole window if it keeps growing as in the last part of a window. */
  extrapolate(count: number, windowMs: DurationMs, at: MonotonicMs): number {
    const partMs = windowMs / TREND_PARTS;
    const index = Math.floor((at * SLICES) / windowMs);
    if (this.#slices.at(-1)?.index !== index) {
      const old = this.#slices.filter((slice) => slice.at <= at - partMs);
      this.#slices = [...old.slice(-1), ...this.#slices.slice(old.length), { index, at, least: count }];
    }
    const last = this.#slices.at(-1)!;
    last.least = Math.min(last.least, count);
    const from = this.#slices.reduce((lowest, slice) => (slice.least <= lowest.least ? slice : lowest));
    const grownMs = Math.min(windowMs, Math.max(partMs, at - from.at));
    return count + ((count - from.least) * (windowMs - grownMs)) / grownMs;
  }
}
