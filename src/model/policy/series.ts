import type { DurationMs } from "../../base/duration.ts";

/** A value and how long it lasts; the last value of a series lasts forever. */
export interface Span<Value> {
  readonly value: Value;
  readonly forMs: DurationMs;
}

/** Values over time from the start of a test; never empty. */
export type Series<Value> = readonly Span<Value>[];

/** Returns the value of a series at a time since the start. */
export function valueAt<Value>(series: Series<Value>, elapsedMs: DurationMs): Value {
  let endsAt = 0;
  for (const { value, forMs } of series) {
    endsAt += forMs;
    if (elapsedMs < endsAt) return value;
  }
  return series.at(-1)!.value;
}
