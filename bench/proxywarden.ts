import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { MINUTE_MS } from "../src/base/duration.ts";
import { createDaemonMetrics } from "../src/metrics/daemon-metrics.ts";
import { createMetricsEndpoint, sendScrape } from "../src/web/scrape/scrape-endpoint.ts";
import { type Measured, measure, serveRounds } from "./bench-process.ts";
import { createFleetSource, inputOf } from "./fleet.ts";

const source = createFleetSource(Number(process.argv[2]));
const daemonMetrics = createDaemonMetrics({ process: false });
/** Moves the clock on, so that each rendering is compressed and no scrape gets the one before. */
let skippedMs = 0;
const clock = { monotonic: () => performance.now() + skippedMs };
const exposition = createMetricsEndpoint({ clock, daemonMetrics });
const gzipped = { "accept-encoding": "gzip" };

function refresh(share: number): Promise<Measured> {
  const input = inputOf(source.next(share), performance.now());
  return measure(() => exposition.refresh(input));
}

function refreshLater(share: number): Promise<Measured> {
  skippedMs += MINUTE_MS;
  return refresh(share);
}

/** Starts a server and returns its URL. */
const listen = (server: Server) =>
  new Promise<string>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
  });

serveRounds({
  full: () => refreshLater(1),
  few: () => refreshLater(0.05),
  /** A full refresh of which the next scrape comes before its compression. */
  change: () => refresh(1),
  /** The first gzip scrape after a refresh, which compresses the whole page. */
  compress: () => measure(async () => (await exposition.scrape(gzipped)).release()),
  text: async () => Buffer.concat((await exposition.scrape({})).chunks).toString(),
  /** Peak RSS so far in megabytes, including rendering, compression and a scrape. */
  rss: () => Promise.resolve(process.resourceUsage().maxRSS / 1e3),
  /** Starts two servers of the same bytes: the scrape endpoint, and a bare one that only sends them. */
  async serve() {
    const scrape = await exposition.scrape(gzipped);
    const bytes = Buffer.concat(scrape.chunks);
    scrape.release();
    const bare = createServer((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-length": bytes.length });
      response.end(bytes);
    });
    const ours = createServer(async (_request, response) => sendScrape(response, await exposition.scrape(gzipped)));
    return { ours: await listen(ours), bare: await listen(bare) };
  },
});
