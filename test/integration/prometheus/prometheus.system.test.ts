import { expect, test } from "vitest";
import { DAEMON_FAMILIES } from "../../../src/metrics/families/daemon-families.ts";
import { NETWORK_FAMILIES } from "../../../src/metrics/families/network-families.ts";
import type { MetricsPage } from "../metrics-page.ts";
import { requireProgram, runProgram } from "../process.ts";
import { configText, NODES, startNetwork, startTestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";
import { startPrometheus } from "./monitoring-servers.ts";
import { openMetricsSamples, type ParsedSample, textSamples } from "./parsers.ts";

const promtool = () => requireProgram("/usr/bin/promtool", "prometheus");

/** Everything is collected only once, so two scrapes differ only in the metrics of the process. */
const once = { nodes: { every: "7d" }, sessions: { every: "7d" }, stats: { every: "7d" }, details: { max_age: "1m" } };

/** Concurrent detail reads of the daemon. */
const DETAILS_AT_ONCE = 4;

/** Returns the names of the families on a page. */
function familiesOn({ text }: MetricsPage): Set<string> {
  return new Set(text.match(/(?<=^# TYPE )\S+/gm));
}

/** Starts a daemon and waits until every family has a sample. */
async function startFullyCollected(collect: object = {}) {
  const network = await startNetwork();
  const limits = { plan: { requests_per_minute: 10_000, concurrent_requests: 50, calls_per_month: 1_000_000 } };
  const sections = { service: { timeout: "5m" }, limits, collect: { ...collect } };
  const daemon = await startTestDaemon(network.clock, configText(network.url, sections));
  await waitUntil("every family has a sample", async () => {
    const page = await daemon.scrape();
    const shown = familiesOn(page);
    const all = NETWORK_FAMILIES.every(({ name }) => shown.has(name));
    return all && page.select("proxynet_node_detail_timestamp_seconds").length === NODES;
  });
  return { network, daemon };
}

test("promtool check metrics finds no problem", async () => {
  const { daemon } = await startFullyCollected();
  const page = await daemon.scrape();
  expect(await runProgram(promtool(), ["check", "metrics"], page.text)).toBe("");
});

test("reference parsers read the same families and values in both formats", async () => {
  const { network, daemon } = await startFullyCollected(once);
  // Only details are read repeatedly. When all concurrent reads hang, nothing changes any more.
  network.setFault({ kind: "hang" });
  await waitUntil("every detail read hangs", () => network.service.inFlight === DETAILS_AT_ONCE);
  // The rendering that is now shown, and one in progress, may lack the last reads.
  const renderings = new Set<number | null>();
  await waitUntil("two more snapshots are rendered", async () => {
    renderings.add((await daemon.scrape()).sum("proxywarden_export_refresh_duration_seconds"));
    return renderings.size > 2;
  });
  const body = async (accept: string) => (await daemon.ask("/metrics", { headers: { accept } })).text();
  const texts = [];
  const open = [];
  for (let round = 0; round < 2; round++) {
    open.push(await body("application/openmetrics-text;version=1.0.0"));
    texts.push(await body("text/plain"));
  }
  const [text, ...others] = await Promise.all([...texts.map(textSamples), ...open.map(openMetricsSamples)]);
  expect(stableSamples(text!).length).toBeGreaterThan(NODES * 10);
  for (const other of others) expect(stableSamples(other)).toEqual(stableSamples(text!));
  // Types of the process metrics are not compared: the event loop lag has no value between two close scrapes.
  const types = (page: string) =>
    [...page.matchAll(/^# TYPE (prox\S+?)(?:_total)? (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  for (const page of [...open, ...texts]) expect(types(page)).toEqual(types(texts[0]!));
  for (const page of texts) expect(page).toMatch(/^proxywarden_ratelimit_exceeded_total\{.* 0$/m);
});

const CHANGES_WITH_TIME =
  /^(?:process_|nodejs_|proxywarden_(?:export_refresh|ratelimit_wait|remediation_last_success|service_clock))/;

/** Returns the samples that do not change with time, sorted. */
const stableSamples = (samples: readonly ParsedSample[]): string[] =>
  samples
    .filter(([name]) => !CHANGES_WITH_TIME.test(name))
    .map(([name, labels, value]) => JSON.stringify([name, Object.entries(labels).toSorted(), value]))
    .toSorted();

interface Target {
  readonly health: string;
  readonly lastError: string;
}

test("a real Prometheus scrapes the daemon in OpenMetrics without errors and stores every family", async () => {
  const { daemon } = await startFullyCollected();
  const prometheus = await startPrometheus(new URL(daemon.app.url()).host);
  await waitUntil("the target was scraped twice", async () => {
    const { activeTargets } = await prometheus.get<{ activeTargets: readonly Target[] }>("targets");
    if (activeTargets.some(({ lastError }) => lastError !== "")) throw new Error(JSON.stringify(activeTargets));
    const [up] = await prometheus.query("count_over_time(up[1m])");
    return activeTargets[0]?.health === "up" && Number(up?.value[1]) >= 2;
  });
  expect((await prometheus.query("min_over_time(up[1m])")).map(({ value }) => value[1])).toEqual(["1"]);

  const stored = new Set(await prometheus.get<readonly string[]>("label/__name__/values"));
  const isStored = (name: string) => stored.has(name) || stored.has(`${name}_bucket`);
  expect(NETWORK_FAMILIES.filter(({ name }) => !isStored(name)).map(({ name }) => name)).toEqual([]);
  const shown = familiesOn(await daemon.scrape());
  const daemonFamilies = Object.keys(DAEMON_FAMILIES).filter((name) => shown.has(name));
  expect(daemonFamilies.length).toBeGreaterThan(20);
  expect(daemonFamilies.filter((name) => !isStored(name))).toEqual([]);

  expect((await prometheus.query("count(proxynet_node_info)")).map(({ value }) => value[1])).toEqual([String(NODES)]);
  // Only OpenMetrics has units.
  const metadata = await prometheus.get<readonly { type: string; unit: string }[]>(
    "targets/metadata?metric=proxynet_session_sent_bytes",
  );
  expect(metadata).toMatchObject([{ type: "counter", unit: "bytes" }]);
});
