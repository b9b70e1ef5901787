import type { DurationMs } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { MonotonicMs } from "../../model/time.ts";

/** Foretells from what others did in a window what they may do in the next. */
export interface UsageForecast {
  /** They made so many calls in the window that it is. */
  record(calls: number, windowMs: DurationMs, at: MonotonicMs): void;
  /** They made so many in some window up to now; how fast they go on it doesn't say. */
  restore(calls: number, windowMs: DurationMs, at: MonotonicMs): void;
  /** Calls that they may make in a window; 0: there are none, or none any more. */
  expected(now: MonotonicMs): number;
}

/** Others are expected to do again what they did in any of so many windows … */
const WINDOWS_REMEMBERED_MIN = 5;
/** … and those who make pauses, after the longest pause from which they came back, and half as much again … */
const PAUSES_COVERED = 1.5;
/** … but not for ever: who comes more seldom lives in the reserve. */
const WINDOWS_REMEMBERED_MAX = 30;
/** Pauses are looked for in so many windows. */
const STORED_WINDOWS_MAX = 60;
/** They pause where they do less than this of what they do when they come back. */
const PAUSE_SHARE: Share = 0.5;
/** Beyond what they did, others may do so much more … */
const MARGIN: Share = 0.1;
/** … and so many calls. */
const MARGIN_CALLS = 1;
/** Who does more than ever before is taken to go on as in the last part of a window. */
const TREND_PARTS = 4;
/** For that, counts are kept by so many slices of a window. */
const SLICES = 60;

interface Window {
  readonly index: number;
  /** The most that was seen in it. */
  most: number;
}

/** Nothing noted yet. */
export function createUsageForecast(): UsageForecast {
  let windows: Window[] = [];
  /** Of all windows: while it is none, there is nothing to reckon. */
  let highest = 0;
  let remembered = WINDOWS_REMEMBERED_MIN;
  let rise = { calls: 0, until: Number.NEGATIVE_INFINITY };
  let length: DurationMs = 1;
  const callRate = createCallRate();

  /** The most of the windows that are remembered in the one of `index`, without those from `end` on. */
  function mostRemembered(index: number, end: number): number {
    const pastWindows = windows.filter((each) => each.index >= index - remembered && each.index < end);
    return pastWindows.reduce((most, each) => Math.max(most, each.most), 0);
  }

  function remember(calls: number, windowMs: DurationMs, at: MonotonicMs): void {
    length = windowMs;
    const index = Math.floor(at / windowMs);
    if (windows.at(-1)?.index !== index) {
      windows = windows.filter((each) => each.index > index - STORED_WINDOWS_MAX);
      highest = windows.reduce((most, each) => Math.max(most, each.most), 0);
      windows.push({ index, most: 0 });
      remembered = rememberedWindows(windows);
    }
    const current = windows.at(-1)!;
    if (calls <= current.most) return;
    current.most = calls;
    highest = Math.max(highest, calls);
    remembered = rememberedWindows(windows);
  }

  return {
    restore: remember,
    record(calls, windowMs, at) {
      remember(calls, windowMs, at);
      const { index } = windows.at(-1)!;
      const before = mostRemembered(index, index);
      const calledOn = callRate.goesOnTo(calls, windowMs, at);
      if (calls > addMargin(before) && calledOn > calls) rise = { calls: calledOn, until: at + windowMs / TREND_PARTS };
      else if (at >= rise.until) rise = { calls: 0, until: at };
    },
    expected(now) {
      if (highest < 1 && rise.calls < 1) return 0;
      const index = Math.floor(now / length);
      const seen = mostRemembered(index, index + 1);
      // A rise ends with a count that says so, for others go on while we wait; without one, after a window.
      const most = now < rise.until + length ? Math.max(seen, rise.calls) : seen;
      return most < 1 ? 0 : Math.ceil(addMargin(most));
    },
  };
}

const addMargin = (calls: number): number => calls * (1 + MARGIN) + MARGIN_CALLS;

/** For how many windows others are remembered, by the longest pause that they made. */
function rememberedWindows(windows: readonly Window[]): number {
  const pauses = windows.map(({ index, most }, place) => {
    const before = windows.slice(0, place).findLast((each) => each.most >= Math.max(1, most * PAUSE_SHARE));
    return before === undefined || most < 1 ? 0 : index - before.index;
  });
  const longest = Math.ceil(PAUSES_COVERED * Math.max(0, ...pauses));
  return Math.min(WINDOWS_REMEMBERED_MAX, Math.max(WINDOWS_REMEMBERED_MIN, longest));
}

/** How fast a count grows. */
function createCallRate() {
  /** The least count of each slice of the last part of a window, and of the one before them. */
  let slices: { readonly index: number; readonly at: MonotonicMs; least: number }[] = [];
  return {
    /** What a count comes to in a window's length, if it goes on as in the last part of one. */
    goesOnTo(count: number, windowMs: DurationMs, at: MonotonicMs): number {
      const partMs = windowMs / TREND_PARTS;
      const index = Math.floor((at * SLICES) / windowMs);
      if (slices.at(-1)?.index !== index) {
        const old = slices.filter((slice) => slice.at <= at - partMs);
        slices = [...old.slice(-1), ...slices.slice(old.length), { index, at, least: count }];
      }
      const last = slices.at(-1)!;
      last.least = Math.min(last.least, count);
      const from = slices.reduce((lower, slice) => (slice.least <= lower.least ? slice : lower));
      const grownMs = Math.min(windowMs, Math.max(partMs, at - from.at));
      return count + ((count - from.least) * (windowMs - grownMs)) / grownMs;
    },
  };
}
