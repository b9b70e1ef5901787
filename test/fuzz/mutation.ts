import type { Random } from "../../src/base/random.ts";

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Picks an element with equal probability. */
export const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;

/** Draws an integer from 0 to `max`. */
export const upTo = (random: Random, max: number): number => Math.floor(random() * (max + 1));

/** The most changes to one value. With few changes an input passes the first checks. */
const CHANGES_MAX = 4;
/** Nesting deeper than the stack of a recursive reader allows. */
const DEPTH = 20_000;
const LONG_TEXT = 5_000;
/**
 * Number of values in a body near the limit of 16 MiB. Such a case takes as long as a thousand others, so it is rare.
 */
const LARGE_LENGTH = 4_000_000;
const LARGE_SHARE = 0.00005;

const numbers = [0, -0, -1, 1.5, 1e-320, 1e15, 2 ** 31, 2 ** 53, 1e300, 8.64e15, 8.64e15 + 1, -1e21, 4_294_967_296];

const texts = [
  "",
  " ",
  "0",
  "-1",
  "1e999",
  "NaN",
  "null",
  "..",
  "/",
  "%00",
  "\0",
  "\n",
  '"',
  "\\",
  "\ud800",
  "\ufffd",
  "\u202e",
  "é",
  "other",
  "__proto__",
  "constructor",
  "toString",
  "x".repeat(257),
  "2026-03-01T00:00:00Z",
  "2026-02-30T00:00:00Z",
  "9999-12-31T23:59:59.999Z",
  "+275760-09-13T00:00:00Z",
  "-271821-04-20T00:00:00Z",
  "0001-01-01T00:00:00Z",
];

const keys = ["__proto__", "constructor", "toString", "valueOf", "toJSON", "then", "length", "", "\ud800"];

/** Draws a value that readers often handle wrongly. */
function oddValue(random: Random): Json {
  switch (upTo(random, 9)) {
    case 0:
      return null;
    case 1:
      return random() < 0.5;
    case 2:
    case 3:
      return pick(random, numbers);
    case 4:
    case 5:
      return pick(random, texts);
    case 6:
      return [];
    case 7:
      return withKey({}, pick(random, keys), pick(random, [1, "x", null]));
    case 8:
      return [[], {}, null, pick(random, numbers)];
    default:
      return random() < 0.02 ? "x".repeat(LONG_TEXT) : random() * 2e9;
  }
}

/** Returns the object with another key. `__proto__` becomes an own property, as with JSON.parse. */
function withKey(object: Readonly<Record<string, Json>>, key: string, value: Json): Json {
  const changed = { ...object };
  Object.defineProperty(changed, key, { value, enumerable: true, configurable: true, writable: true });
  return changed;
}

/** Returns a copy of a JSON value with some random changes. */
export function mutated(random: Random, value: Json): Json {
  let result = value;
  for (let changes = 1 + upTo(random, CHANGES_MAX - 1); changes > 0; changes--) result = changedOnce(random, result);
  return result;
}

function changedOnce(random: Random, value: Json): Json {
  const isLeaf = typeof value !== "object" || value === null;
  if (isLeaf || random() < 0.15) return random() < 0.2 ? [value] : oddValue(random);
  return Array.isArray(value) ? changedList(random, value) : changedObject(random, value as Record<string, Json>);
}

function changedList(random: Random, list: readonly Json[]): Json {
  if (list.length === 0) return [oddValue(random)];
  const index = upTo(random, list.length - 1);
  switch (upTo(random, 7)) {
    case 0:
      return list.toSpliced(index, 1);
    case 1:
      return [...list, list[index]!];
    case 2:
      return list.toSpliced(index, 0, oddValue(random));
    case 3:
      return list.toReversed();
    default:
      return list.with(index, changedOnce(random, list[index]!));
  }
}

function changedObject(random: Random, object: Readonly<Record<string, Json>>): Json {
  const known = Object.keys(object);
  if (known.length === 0) return withKey(object, pick(random, keys), oddValue(random));
  const key = pick(random, known);
  switch (upTo(random, 9)) {
    case 0: {
      const { [key]: _, ...rest } = object;
      return rest;
    }
    case 1:
      return withKey(object, pick(random, keys), oddValue(random));
    case 2:
      return withKey(object, key, object[pick(random, known)]!);
    default:
      return withKey(object, key, changedOnce(random, object[key]!));
  }
}

/** Returns the text of a JSON value, sometimes with numbers and nesting that JSON.stringify does not produce. */
export function jsonText(random: Random, value: Json): string {
  const text = JSON.stringify(value);
  if (random() < LARGE_SHARE)
    return text.replace("[", `[${pick(random, ["{},", "1,", "[],", '"",'] as const).repeat(LARGE_LENGTH)}`);
  const draw = random();
  if (draw < 0.03)
    return text.replace(/-?\d+(?:\.\d+)?/, pick(random, ["1e999", "-0", "1e-999", "01", "123456789".repeat(9)]));
  if (draw < 0.032) return text.replace(/null|true|false|\d+|""/, nested(random));
  return draw < 0.1 ? mutatedText(random, text, jsonWords) : text;
}

const nested = (random: Random): string => {
  const [open, close] = pick(random, [
    ["[", "]"],
    ['{"id":', "}"],
  ] as const);
  return `${open.repeat(DEPTH)}1${close.repeat(DEPTH)}`;
};

const jsonWords = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "null",
  "1e9",
  "\\u0000",
  "\\ud800",
  "\u00ff",
  " ",
  "\ufeff",
  "//",
];

/** Returns a text with some parts removed, repeated, overwritten, or replaced by one of `words`. */
export function mutatedText(random: Random, text: string, words: readonly string[]): string {
  let result = text;
  for (let changes = 1 + upTo(random, CHANGES_MAX - 1); changes > 0; changes--) {
    const at = upTo(random, result.length);
    const end = Math.min(result.length, at + upTo(random, pick(random, [1, 8, 64])));
    const [before, part, after] = [result.slice(0, at), result.slice(at, end), result.slice(end)];
    switch (upTo(random, 5)) {
      case 0:
        result = before + after;
        break;
      case 1:
        result = before + part + part + after;
        break;
      case 2:
        result = before + String.fromCharCode(upTo(random, 255)) + after;
        break;
      case 3: {
        const from = upTo(random, text.length);
        result = before + text.slice(from, from + upTo(random, 64)) + after;
        break;
      }
      default:
        result = before + pick(random, words) + after;
    }
  }
  return result;
}

/** Returns random bytes as a Latin-1 string. */
export const randomBytes = (random: Random, lengthMax: number): string =>
  Array.from({ length: upTo(random, lengthMax) }, () => String.fromCharCode(upTo(random, 255))).join("");

/** Converts a Latin-1 string to bytes; a string with other characters becomes UTF-8. */
export const bytesOf = (text: string): Buffer =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of Latin-1
  /^[\u0000-\u00ff]*$/.test(text) ? Buffer.from(text, "latin1") : Buffer.from(text, "utf8");
