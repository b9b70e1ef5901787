import type { Daemon } from "../../daemon/daemon.ts";
import type { SimulatedService } from "../../simulator/http/service.ts";
import { rateLimitedCount, replyCounts } from "../../simulator/inspection.ts";
import { statusView } from "../../web/api/status-views.ts";

/** Scrapes that the scrape time is the median of. */
const SCRAPES_MEASURED = 21;

/** What a demo came to: calls as the service counted them, what was done, age of the data, memory, and the time of a scrape. */
export async function demoReport(app: Daemon, service: SimulatedService): Promise<string> {
  const calls = replyCounts(service).map(
    ({ endpoint, status, count }) => `  ${String(count).padStart(6)}  ${endpoint}  ${status}`,
  );
  const actions = await actionCounts(app.url());
  const ages = Object.entries(formatAges(app)).map(([collector, age]) => `  ${collector.padEnd(9)} ${age}`);
  const plain = await measureScrape(app.url(), "identity");
  const packed = await measureScrape(app.url(), "gzip");
  return `
calls, by endpoint and answer
${calls.join("\n")}
  ${String(rateLimitedCount(service)).padStart(6)}  answered 429

actions, by policy, kind and outcome
${actions.length === 0 ? "  none" : actions.join("\n")}

age of the data in seconds, median and most
${ages.join("\n")}

scrape: ${plain.ms.toFixed(1)} ms for ${plain.bytes} bytes, ${packed.ms.toFixed(1)} ms for ${packed.bytes} bytes of gzip
memory: ${Math.round(process.memoryUsage.rss() / 2 ** 20)} MiB resident, the simulated service included
`;
}

interface StatusCollectors {
  readonly collectors: Readonly<Record<string, { readonly age_seconds: { median: number; max: number } | null }>>;
}

function formatAges(app: Daemon): Record<string, string> {
  const { collectors } = statusView(app.statusSnapshot()) as StatusCollectors;
  return Object.fromEntries(
    Object.entries(collectors).map(([name, { age_seconds: age }]) => [
      name,
      age === null ? "nothing yet" : `${age.median.toFixed(1)}  ${age.max.toFixed(1)}`,
    ]),
  );
}

/** What `/metrics` has counted so far, and is not zero. */
async function actionCounts(url: string): Promise<string[]> {
  const page = await (await fetch(`${url}/metrics`)).text();
  const samples = /^proxywarden_actions_total\{policy="(.*)",action="(.*)",outcome="(.*)"\} ([1-9]\d*)$/gm;
  return [...page.matchAll(samples)].map(
    ([, policy, action, outcome, count]) => `  ${count!.padStart(6)}  ${policy}  ${action}  ${outcome}`,
  );
}

async function measureScrape(url: string, encoding: "identity" | "gzip"): Promise<{ ms: number; bytes: number }> {
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round < SCRAPES_MEASURED; round++) {
    const began = performance.now();
    const response = await fetch(`${url}/metrics`, { headers: { "accept-encoding": encoding } });
    await response.arrayBuffer();
    times.push(performance.now() - began);
    bytes = Number(response.headers.get("content-length"));
  }
  return { ms: times.sort((a, b) => a - b)[SCRAPES_MEASURED >> 1]!, bytes };
}
