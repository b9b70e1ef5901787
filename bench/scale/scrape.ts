import { get, type IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";

const decompress = promisify(gunzip);

/** Scrapes /metrics once. Returns the body as it was sent. */
export async function scrape(url: string, encoding: "identity" | "gzip"): Promise<{ body: Buffer; tookMs: number }> {
  const startedAt = performance.now();
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/metrics`, { headers: { "accept-encoding": encoding } }, resolve).once("error", reject);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  if (response.statusCode !== 200) throw new Error(`/metrics answered ${response.statusCode}`);
  return { body: Buffer.concat(chunks), tookMs: performance.now() - startedAt };
}

/** The daemon's own metrics follow those of the network, and take less than this. */
const DAEMON_TEXT_BYTES = 1_000_000;

/** Scrapes /metrics with gzip, and returns values of the daemon's own metrics. */
export async function readPage(url: string) {
  const page = await decompress((await scrape(url, "gzip")).body);
  const text = page.subarray(-DAEMON_TEXT_BYTES).toString("latin1");
  /** Sum of the samples of a family whose labels contain `label`. */
  const sum = (family: string, label = "") =>
    [...text.matchAll(new RegExp(`^${family}(?:\\{(.*)\\})? (\\S+)$`, "gm"))]
      .filter(([, labels = ""]) => labels.includes(label))
      .reduce((total, [, , value]) => total + Number(value), 0);
  return {
    series: sum("proxywarden_export_series"),
    cpuSeconds: sum("process_cpu_seconds_total"),
    /** Of the event loop, since the scrape before. */
    delayP99Ms: 1_000 * sum("nodejs_eventloop_lag_p99_seconds"),
    delayMaxMs: 1_000 * sum("nodejs_eventloop_lag_max_seconds"),
    calls: sum("proxywarden_api_requests_total"),
    detailReads: sum("proxywarden_api_requests_total", 'endpoint="node"'),
    detailsPlannedPerMinute: sum("proxywarden_plan_calls_per_minute", 'collector="details"'),
  };
}
