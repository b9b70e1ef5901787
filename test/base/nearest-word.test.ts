import fc from "fast-check";
import { expect, test } from "vitest";
import { nearest } from "../../src/base/nearest-word.ts";

const keys = ["every", "cron", "timeout", "page_limit", "api_key", "api_key_file"];

test.each([
  ["evry", "every"],
  ["everyy", "every"],
  ["eevry", "every"],
  ["Every", "every"],
  ["crn", "cron"],
  ["corn", "cron"],
  ["time-out", "timeout"],
  ["pageLimit", "page_limit"],
  ["page-limit", "page_limit"],
  ["apikey", "api_key"],
  ["api_keyfile", "api_key_file"],
])("%s was meant to be %s", (word, key) => {
  expect(nearest(word, keys)).toBe(key);
});

test.each(["", "x", "interval", "cr", "eeeee", "x".repeat(101)])("finds no candidate close to %s", (word) => {
  expect(nearest(word, keys)).toBeNull();
});

test("finds a key itself, and with one mistake", () => {
  const words = fc.stringMatching(/^[a-z]{4,12}$/);
  fc.assert(
    fc.property(words, fc.nat(11), (word, at) => {
      const place = at % (word.length - 1);
      const swapped = word.slice(0, place) + word[place + 1] + word[place] + word.slice(place + 2);
      for (const typo of [word, `${word}x`, word.slice(1), swapped]) expect(nearest(typo, [word])).toBe(word);
    }),
  );
});
