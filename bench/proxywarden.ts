import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { MINUTE_MS } from "../src/base/duration.ts";
import { createDaemonMetrics } from "../src/metrics/daemon-metrics.ts";
import { nextTurn, runInSlices } from "../src/platform/event-loop.ts";
import { MetricsEndpoint, sendScrape } from "../src/web/scrape/metrics-endpoint.ts";
import { bodyOf } from "../test/harness/scrape-body.ts";
import { type Measured, measure, serveRounds } from "./bench-process.ts";
import { createFleetSource, inputOf } from "./fleet.ts";

const source = createFleetSource(Number(process.argv[2]));
const daemonMetrics = createDaemonMetrics({ process: false });
/** Added to the clock, so that each snapshot is compressed and no scrape gets an earlier one. */
let skippedMs = 0;
const clock = { monotonic: () => performance.now() + skippedMs };
const gzipEndpoint = new MetricsEndpoint({ clock, daemonMetrics });
/** Is never asked for gzip, so it compresses nothing ahead of scrapes. */
const textEndpoint = new MetricsEndpoint({ clock, daemonMetrics });
const gzipped = { "accept-encoding": "gzip" };

const nextInput = (share: number, scattered = false) => inputOf(source.next(share, scattered), performance.now());

/** Publishes a snapshot in which a share of the nodes changed, and renders all of it. */
function render(share: number, scattered = false): Promise<Measured> {
  const input = nextInput(share, scattered);
  return measure(async () => {
    await textEndpoint.refresh(input);
    // In the daemon, a scrape is a request, which arrives in a turn of its own.
    await nextTurn();
    const scrape = await textEndpoint.scrape({});
    await runInSlices(scrape.chunks[Symbol.iterator](), clock);
    scrape.release();
  });
}

/** Publishes a snapshot in which a share of the nodes changed, and brings its compressed rendering up to date. */
function compressChanged(share: number, scattered = false): Promise<Measured> {
  skippedMs += MINUTE_MS;
  const input = nextInput(share, scattered);
  return measure(async () => {
    await gzipEndpoint.refresh(input);
    await nextTurn();
    (await gzipEndpoint.scrape(gzipped)).release();
  });
}

/** Starts a server and returns its URL. */
const listen = (server: Server) =>
  new Promise<string>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
  });

serveRounds({
  text_of_all: () => render(1),
  text_of_scattered: () => render(0.05, true),
  gzip_of_all: () => compressChanged(1),
  gzip_of_few: () => compressChanged(0.05),
  gzip_of_scattered: () => compressChanged(0.05, true),
  /** Publishes a snapshot so that the next scrape arrives before it is compressed. */
  change: async () => {
    await gzipEndpoint.refresh(nextInput(1));
    return true;
  },
  text: async () => bodyOf(await textEndpoint.scrape({})).toString(),
  /** Peak RSS so far in megabytes, including rendering, compression and a scrape. */
  rss: () => Promise.resolve((process.resourceUsage().maxRSS * 1_024) / 1e6),
  /** Starts two servers of the same bytes: the scrape endpoint, and a bare one that only sends them. */
  async serve() {
    const scrape = await gzipEndpoint.scrape(gzipped);
    const bytes = bodyOf(scrape);
    scrape.release();
    const bare = createServer((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-length": bytes.length });
      response.end(bytes);
    });
    const proxywarden = createServer(async (_request, response) =>
      sendScrape(response, await gzipEndpoint.scrape(gzipped)),
    );
    return { proxywarden: await listen(proxywarden), bare: await listen(bare) };
  },
});
