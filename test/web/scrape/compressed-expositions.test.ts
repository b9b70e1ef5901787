import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { storedChunk } from "../../../src/metrics/render/chunk.ts";
import { createCompressedExpositions, finishGzip } from "../../../src/web/scrape/gzip-assembly.ts";

function expositionsOnStoppedClock() {
  const clock = { at: 0, monotonic: () => clock.at };
  const expositions = createCompressedExpositions(clock);
  const shownFor = async (text: string) => {
    const start = await expositions.startOf(expositionOf(text), "text");
    return gunzipSync(Buffer.concat(finishGzip(start, new Uint8Array()))).toString();
  };
  /** As `shownFor`, with a compression that takes `tookMs`. */
  const shownSlowly = (text: string, tookMs: number) => {
    const shown = shownFor(text);
    clock.at += tookMs;
    return shown;
  };
  return { clock, expositions, shownFor, shownSlowly };
}

const expositionOf = (text: string) => ({
  series: 1,
  droppedFamilies: [],
  source: null,
  chunks: { text: [storedChunk(Buffer.from(text))], openmetrics: [] },
});

test("expositions are compressed ahead of scrapes once gzip was requested, and a quick compression is followed by a pause", async () => {
  const { clock, expositions, shownFor, shownSlowly } = expositionsOnStoppedClock();
  await expositions.prepare(expositionOf("never requested"));
  expect(await shownSlowly("one", 100)).toBe("one");
  // The compression took 100 ms, so the next one is due 1,900 ms later.
  clock.at = 1_999;
  await expositions.prepare(expositionOf("two"));
  expect(await shownFor("two")).toBe("one");
  clock.at = 2_000;
  const third = expositions.prepare(expositionOf("three"));
  clock.at = 2_100;
  await third;
  expect(await shownFor("four")).toBe("three");
});

test("a scrape gets a compressed exposition up to 10 s old, and none from before the metrics were cleared", async () => {
  const { clock, expositions, shownFor, shownSlowly } = expositionsOnStoppedClock();
  expect(await shownSlowly("one", 100)).toBe("one");
  clock.at = 10_000;
  expect(await shownFor("two")).toBe("one");
  clock.at = 10_001;
  expect(await shownSlowly("three", 100)).toBe("three");
  expositions.clear();
  const older = shownSlowly("four", 100);
  expositions.clear();
  expect([await older, await shownFor("five")]).toEqual(["four", "five"]);
});

test("a scrape waits for the current exposition if it can be compressed quickly", async () => {
  const { shownFor, shownSlowly } = expositionsOnStoppedClock();
  expect(await shownSlowly("one", 50)).toBe("one");
  expect(await shownFor("two")).toBe("two");
});
