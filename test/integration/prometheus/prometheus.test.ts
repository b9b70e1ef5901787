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

/** Collected once, and then no more: what two scrapes show differs by nothing but the process itself. */
const once = { nodes: { every: "7d" }, sessions: { every: "7d" }, stats: { every: "7d" }, details: { max_age: "1m" } };

/** Detail reads that the daemon has under way at most. */
const DETAILS_AT_ONCE = 4;

/** Every family of a page by its name, a histogram's parts taken together. */
function familiesOn({ text }: MetricsPage): Set<string> {
  return new Set(text.match(/(?<=^# TYPE )\S+/gm));
}

/** Starts a daemon, and waits until it saw all that there is. */
async function startSeeing(collect: object = {}) {
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

test("promtool check metrics finds nothing on the page of a running daemon", async () => {
  const { daemon } = await startSeeing();
  const page = await daemon.scrape();
  expect(await runProgram(promtool(), ["check", "metrics"], page.text)).toBe("");
});

test("pain 12: both formats carry the same families and values, by reference parsers, and neither changes the other", async () => {
  const { network, daemon } = await startSeeing(once);
  // The details alone are read over and over. Once as many calls hang as it makes at a time, nothing moves any more.
  network.setFault({ kind: "hang" });
  await waitUntil("every detail read hangs", () => network.service.inFlight === DETAILS_AT_ONCE);
  const body = async (accept: string) => (await daemon.ask("/metrics", { headers: { accept } })).text();
  const texts = [];
  const open = [];
  for (let round = 0; round < 2; round++) {
    open.push(await body("application/openmetrics-text;version=1.0.0"));
    texts.push(await body("text/plain"));
  }
  const [text, ...others] = await Promise.all([...texts.map(textSamples), ...open.map(openMetricsSamples)]);
  expect(settled(text!).length).toBeGreaterThan(NODES * 10);
  for (const other of others) expect(settled(other)).toEqual(settled(text!));
  // Of the process itself, a mean of the loop's lag has no value where the loop did not turn since the last scrape.
  const types = (page: string) =>
    [...page.matchAll(/^# TYPE (prox\S+?)(?:_total)? (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  for (const page of [...open, ...texts]) expect(types(page)).toEqual(types(texts[0]!));
  for (const page of texts) expect(page).toMatch(/^proxywarden_ratelimit_exceeded_total\{.* 0$/m);
});

/** What no time that passes changes, in an order of its own. */
const settled = (samples: readonly ParsedSample[]): string[] =>
  samples
    .filter(([name]) => !/^(?:process_|nodejs_|proxywarden_(?:export_refresh|ratelimit_wait|service_clock))/.test(name))
    .map(([name, labels, value]) => JSON.stringify([name, Object.entries(labels).toSorted(), value]))
    .toSorted();

interface Target {
  readonly health: string;
  readonly lastError: string;
}

test("a real Prometheus scrapes the daemon in OpenMetrics, is up without an error, and holds every family", async () => {
  const { daemon } = await startSeeing();
  const prometheus = await startPrometheus(new URL(daemon.app.url()).host);
  await waitUntil("the target was scraped twice", async () => {
    const { activeTargets } = await prometheus.get<{ activeTargets: readonly Target[] }>("targets");
    if (activeTargets.some(({ lastError }) => lastError !== "")) throw new Error(JSON.stringify(activeTargets));
    const [up] = await prometheus.query("count_over_time(up[1m])");
    return activeTargets[0]?.health === "up" && Number(up?.value[1]) >= 2;
  });
  expect((await prometheus.query("min_over_time(up[1m])")).map(({ value }) => value[1])).toEqual(["1"]);

  const held = new Set(await prometheus.get<readonly string[]>("label/__name__/values"));
  const isHeld = (name: string) => held.has(name) || held.has(`${name}_bucket`);
  expect(NETWORK_FAMILIES.filter(({ name }) => !isHeld(name)).map(({ name }) => name)).toEqual([]);
  const shown = familiesOn(await daemon.scrape());
  const own = Object.keys(DAEMON_FAMILIES).filter((name) => shown.has(name));
  expect(own.length).toBeGreaterThan(20);
  expect(own.filter((name) => !isHeld(name))).toEqual([]);

  expect((await prometheus.query("count(proxynet_node_info)")).map(({ value }) => value[1])).toEqual([String(NODES)]);
  // The text format has no units: that Prometheus knows one shows which format it took.
  const metadata = await prometheus.get<readonly { type: string; unit: string }[]>(
    "targets/metadata?metric=proxynet_session_sent_bytes",
  );
  expect(metadata).toMatchObject([{ type: "counter", unit: "bytes" }]);
});
