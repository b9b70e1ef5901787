import { z } from "zod";
import { type DurationMs, parseDuration } from "../../base/duration.ts";
import type { Series, Span } from "../../model/policy/policy-test.ts";
import { rejectValue, valueKinds } from "./value-types.ts";

const SERIES_SPANS_MAX = 100;

/** A span is `VALUE for DURATION`; the last one may be only `VALUE`. */
const SPAN_PATTERN = /^\s*(\S.*?)(?:\s+for\s+(\S+))?\s*$/;

/**
 * A value over time, written as one value or a list of spans. `kind` is its name in the reference; `read` returns null
 * if a value is invalid.
 */
export function series<Value>(kind: string, example: string, read: (text: string) => Value | null) {
  const expected = `must be a ${kind}, such as ${example}, or a list over time, such as [${example} for 10m, …]`;
  const scalar = z.union([z.string(), z.number().min(0, expected)], { error: expected });
  const written = z
    .union([scalar, z.array(scalar).min(1, expected).max(SERIES_SPANS_MAX)], { error: expected })
    .register(valueKinds, { name: `${kind}, or a list over time` });
  return written.transform((value, context): Series<Value> => {
    const spans = [value].flat().map((span) => spanOf(String(span), read));
    if (spans.includes(null)) return rejectValue(context, value, expected);
    const whole = spans as Span<Value>[];
    const isTimed = whole.slice(0, -1).every(({ forMs }) => Number.isFinite(forMs));
    return isTimed ? whole : rejectValue(context, value, "must have a duration for each value except the last one");
  });
}

function spanOf<Value>(written: string, read: (text: string) => Value | null): Span<Value> | null {
  const [, word, time] = SPAN_PATTERN.exec(written) ?? [];
  const value = word === undefined ? null : read(word);
  const forMs = time === undefined ? Number.POSITIVE_INFINITY : durationOf(time);
  return value === null || forMs === null ? null : { value, forMs };
}

function durationOf(written: string): DurationMs | null {
  const read = parseDuration(written);
  return read.ok && read.value > 0 ? read.value : null;
}

/** Returns a reader of the known words. */
export const wordOf =
  <const Word extends string>(known: readonly Word[]) =>
  (written: string): Word | null =>
    known.find((word) => word === written) ?? null;

/** Returns a reader of numbers from 0 to `max`. */
export const numberUpTo = (max: number) => (written: string) => {
  const value = Number(written);
  return value >= 0 && value <= max ? value : null;
};

/** Returns a reader of whole numbers from 0 to `max`. */
export const wholeUpTo = (max: number) => (written: string) => {
  const value = numberUpTo(max)(written);
  return Number.isInteger(value) ? value : null;
};
