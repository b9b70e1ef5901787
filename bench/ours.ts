import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createDaemonMetrics } from "../src/metrics/daemon-metrics.ts";
import { createMetricsEndpoint, sendScrape } from "../src/web/scrape/scrape-endpoint.ts";
import { createFleetSource, inputOf } from "./fleet.ts";
import { type Measured, measure, serveRounds } from "./rounds.ts";

const source = createFleetSource(Number(process.argv[2]));
const warden = createDaemonMetrics({ process: false });
const exposition = createMetricsEndpoint({ clock: { monotonic: () => performance.now() }, daemonMetrics: warden });
const gzipped = { acceptEncoding: "gzip" };

function refresh(share: number): Promise<Measured> {
  const input = inputOf(source.next(share), performance.now());
  return measure(() => exposition.refresh(input));
}

/** The server's URL. */
const listen = (server: Server) =>
  new Promise<string>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
  });

serveRounds({
  full: () => refresh(1),
  few: () => refresh(0.05),
  /** The first gzip scrape of a rendering, for which all of it is compressed. */
  compress: () => measure(async () => (await exposition.scrape(gzipped)).release()),
  text: async () => Buffer.concat((await exposition.scrape({})).chunks).toString(),
  /** Peak so far, in megabytes: every rendering, the compression and a scrape included. */
  rss: () => Promise.resolve(process.resourceUsage().maxRSS / 1e3),
  /** Two servers of the same bytes: ours, and one that has nothing to do but to send them. */
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
