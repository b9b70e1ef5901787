import type { Daemon } from "../../daemon/daemon.ts";
import { rateLimitedCount, replyCounts, type SimulatedService } from "../../simulator/http/service.ts";
import { statusView } from "../../web/api/status-views.ts";
import { formatCount, formatDuration } from "../../web/ui/page/format.ts";

/** Number of scrapes whose median is the scrape time. */
const SCRAPES_MEASURED = 21;

/** Returns the report at the end of a demo: API calls, actions, age of the data, scrape time and memory. */
export async function demoReport(daemon: Daemon, service: SimulatedService): Promise<string> {
  const calls = replyCounts(service).map(
    ({ endpoint, status, count }) => `  ${String(count).padStart(6)}  ${endpoint}  ${status}`,
  );
  const actions = await actionCounts(daemon.url());
  const { collectors } = statusView(daemon.statusSnapshot());
  const ages = Object.entries(collectors).map(([collector, { age_seconds: age }]) => {
    const shown = age === null ? "no data yet" : `${formatDuration(age.median)}  ${formatDuration(age.max)}`;
    return `  ${collector.padEnd(9)} ${shown}`;
  });
  const plain = await measureScrape(daemon.url(), "identity");
  const packed = await measureScrape(daemon.url(), "gzip");
  return `
calls, by endpoint and response status
${calls.join("\n")}
  ${String(rateLimitedCount(service)).padStart(6)}  answered 429

actions, by policy, kind and outcome
${actions.length === 0 ? "  none" : actions.join("\n")}

age of the data, median and maximum
${ages.join("\n")}

scrape: ${plain.ms.toFixed(1)} ms for ${formatCount(plain.bytes)} bytes, ${packed.ms.toFixed(1)} ms for ${formatCount(packed.bytes)} bytes with gzip
memory: ${Math.round(process.memoryUsage.rss() / 2 ** 20)} MiB resident, including the simulated service
`;
}

/** The counters of actions in `/metrics` that are not zero. */
async function actionCounts(url: string): Promise<string[]> {
  const page = await (await fetch(`${url}/metrics`)).text();
  const samples = /^proxywarden_actions_total\{policy="(.*)",action="(.*)",outcome="(.*)"\} ([1-9]\d*)$/gm;
  return [...page.matchAll(samples)].map(
    ([, policy, action, outcome, count]) => `  ${count!.padStart(6)}  ${policy}  ${action}  ${outcome}`,
  );
}

/** Measures scrapes: their median time, and the bytes sent. */
async function measureScrape(url: string, encoding: "identity" | "gzip"): Promise<{ ms: number; bytes: number }> {
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round < SCRAPES_MEASURED; round++) {
    const began = performance.now();
    const response = await fetch(`${url}/metrics`, { headers: { "accept-encoding": encoding } });
    const body = await response.arrayBuffer();
    times.push(performance.now() - began);
    // A compressed response states its length before it is decompressed; an uncompressed one may not.
    bytes = encoding === "gzip" ? Number(response.headers.get("content-length")) : body.byteLength;
  }
  return { ms: times.sort((a, b) => a - b)[SCRAPES_MEASURED >> 1]!, bytes };
}
