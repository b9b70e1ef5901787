import { z } from "zod";
import { type DurationMs, parseDuration } from "../../base/duration.ts";
import type { Series, Span } from "../../model/policy/policy-test.ts";
import { rejectValue, valueKinds } from "./value-types.ts";

const SERIES_SPANS_MAX = 100;

/** A span: `VALUE for DURATION`, or `VALUE` for the last one. */
const SPAN_PATTERN = /^\s*(\S.*?)(?:\s+for\s+(\S+))?\s*$/;

/**
 * A value over time: one value, or a list of spans. `kind` is its name in the reference; `read` returns null for an invalid
 * value.
 */
export function series<Value>(kind: string, example: string, read: (text: string) => Value | null) {
  const expected = `must be a ${kind}, such as ${example}, or a list of such over time, as in [${example} for 10m, …]`;
  const scalar = z.union([z.string(), z.number().min(0, expected)], { error: expected });
  const written = z
    .union([scalar, z.array(scalar).min(1, expected).max(SERIES_SPANS_MAX)], { error: expected })
    .register(valueKinds, { name: `${kind}, or a list over time` });
  return written.transform((value, context): Series<Value> => {
    const spans = [value].flat().map((each) => spanOf(String(each), read));
    if (spans.includes(null)) return rejectValue(context, value, expected);
    const whole = spans as Span<Value>[];
    const isTimed = whole.slice(0, -1).every(({ forMs }) => Number.isFinite(forMs));
    return isTimed ? whole : rejectValue(context, value, "must say for how long each but the last one stays");
  });
}

function spanOf<Value>(written: string, read: (text: string) => Value | null): Span<Value> | null {
  const [, word = "", time] = SPAN_PATTERN.exec(written) ?? [];
  const value = read(word);
  const forMs = time === undefined ? Number.POSITIVE_INFINITY : durationOf(time);
  return value === null || forMs === null ? null : { value, forMs };
}

function durationOf(written: string): DurationMs | null {
  const read = parseDuration(written);
  return read.ok && read.value > 0 ? read.value : null;
}

/** Reads one of some words. */
export const wordOf =
  <const Word extends string>(known: readonly Word[]) =>
  (written: string): Word | null =>
    known.find((word) => word === written) ?? null;

/** Reads a number from 0. */
export const numberUpTo = (max: number) => (written: string) => {
  const value = Number(written);
  return value >= 0 && value <= max ? value : null;
};

/** Reads a whole number from 0. */
export const wholeUpTo = (max: number) => (written: string) => {
  const value = numberUpTo(max)(written);
  return Number.isInteger(value) ? value : null;
};
