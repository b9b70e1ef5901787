import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createChunk } from "../../../src/metrics/render/chunk.ts";
import { createCompressedRenderings } from "../../../src/web/scrape/compressed-renderings.ts";
import { finishGzip } from "../../../src/web/scrape/gzip-assembly.ts";

function renderingsOnStoppedClock() {
  const clock = { at: 0, monotonic: () => clock.at };
  const renderings = createCompressedRenderings(clock);
  const shownFor = async (text: string) => {
    const start = await renderings.startOf(pageOf(text), "text");
    return gunzipSync(Buffer.concat(finishGzip(start, new Uint8Array()))).toString();
  };
  return { clock, renderings, shownFor };
}

const pageOf = (text: string) => ({
  series: 1,
  droppedFamilies: [],
  chunks: { text: [createChunk(Buffer.from(text))], openmetrics: [] },
});

test("renderings are compressed ahead of scrapes once gzip was requested, a twentieth of the time", async () => {
  const { clock, renderings, shownFor } = renderingsOnStoppedClock();
  await renderings.prepare(pageOf("never requested"));
  const first = shownFor("one");
  clock.at = 100;
  expect(await first).toBe("one");
  // The compression took 100 ms, so the next one is due 1,900 ms later.
  clock.at = 1_999;
  await renderings.prepare(pageOf("two"));
  expect(await shownFor("two")).toBe("one");
  clock.at = 2_000;
  await renderings.prepare(pageOf("three"));
  expect(await shownFor("four")).toBe("three");
});

test("a scrape gets a compressed rendering up to 10 s old, and none from before the metrics were cleared", async () => {
  const { clock, renderings, shownFor } = renderingsOnStoppedClock();
  expect(await shownFor("one")).toBe("one");
  clock.at = 10_000;
  expect(await shownFor("two")).toBe("one");
  clock.at = 10_001;
  expect(await shownFor("three")).toBe("three");
  renderings.clear();
  expect(await shownFor("four")).toBe("four");
});
