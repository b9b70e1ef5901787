import { once } from "node:events";
import { createServer, get, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import { MetricsEndpoint, sendScrape } from "../../../src/web/scrape/metrics-endpoint.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";

/** Starts a server that sends the chunks. Returns its URL, a promise of the release, and the errors of sending. */
async function serving(chunks: Iterable<Uint8Array>) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const revoked = new AbortController().signal;
  const errors: unknown[] = [];
  const scrape = { contentType: "text/plain", contentLength: null, chunks, revoked, release };
  const server = createServer((_request, response) => {
    sendScrape(response, scrape).catch((error: unknown) => errors.push(error));
  });
  return { url: `http://127.0.0.1:${await listenInTest(server)}/metrics`, released, errors };
}

/** Creates an iterable of `count` chunks that counts the ones taken. Calls `onTaken` before each. */
function countedChunks(count: number, bytes: number, onTaken: () => void = () => {}) {
  const counted = {
    taken: 0,
    *[Symbol.iterator]() {
      for (; counted.taken < count; counted.taken++) {
        onTaken();
        yield Buffer.alloc(bytes, "a");
      }
    },
  };
  return counted;
}

test("no chunk is taken after the client has disconnected", async () => {
  const chunks = countedChunks(100_000, 500_000);
  const { url, released, errors } = await serving(chunks);
  const [response] = (await once(get(url), "response")) as [IncomingMessage];
  let receivedBytes = 0;
  for await (const part of response) {
    receivedBytes += (part as Buffer).length;
    if (receivedBytes > 5_000_000) break;
  }
  await released;
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  const { taken } = chunks;
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  expect(chunks.taken).toBe(taken);
  expect(errors).toEqual([]);
});

test("an error in a chunk disconnects the client, so that it does not take a truncated body for a complete one", async () => {
  let taken = 0;
  const error = new Error("the chunk can't be rendered");
  const { url, released, errors } = await serving(
    countedChunks(10, 1_000, () => {
      if (++taken === 5) throw error;
    }),
  );
  const [response] = (await once(get(url), "response")) as [IncomingMessage];
  await expect(buffer(response)).rejects.toThrow("aborted");
  await released;
  expect(errors).toEqual([error]);
});

test("nothing is rendered for HEAD", async () => {
  const chunks = countedChunks(10, 1_000);
  const { url, released } = await serving(chunks);
  const [response] = (await once(request(url, { method: "HEAD" }).end(), "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.resume();
  await released;
  expect(chunks.taken).toBe(0);
});

test("a large body is rendered in many turns of the event loop, even if the client reads without delay", async () => {
  let turn = 0;
  let isOver = false;
  const turns: number[] = [];
  const { url, released } = await serving(countedChunks(100, 500_000, () => turns.push(turn)));
  const counting = (async () => {
    for (; !isOver; turn++) await setImmediate();
  })();
  const [response] = (await once(get(url), "response")) as [IncomingMessage];
  expect((await buffer(response)).length).toBe(50_000_000);
  await released;
  isOver = true;
  await counting;
  expect(new Set(turns).size).toBeGreaterThanOrEqual(50);
});

test("the network's metrics start in a later turn of the event loop than the daemon's", async () => {
  const daemonMetrics = createDaemonMetrics({ process: false });
  const order: string[] = [];
  const render: typeof daemonMetrics.render = async (format) => {
    void setImmediate().then(() => order.push("turn"));
    return daemonMetrics.render(format);
  };
  const clock = { monotonic: () => 0 };
  const exposition = new MetricsEndpoint({ clock, daemonMetrics: { ...daemonMetrics, render } });
  await exposition.scrape({});
  order.push("scrape");
  expect(order).toEqual(["turn", "scrape"]);
});
