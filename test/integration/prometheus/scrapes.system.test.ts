import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { networkFamilyNames } from "../../../src/metrics/families/network-families.ts";
import { defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { replyCounts } from "../../../src/simulator/http/service.ts";
import { nodesOn, startDaemonOnNetwork } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** Everything is collected only once during a test. */
const once = { collect: { nodes: { every: "7d" }, sessions: { every: "7d" }, stats: { every: "7d" } } };

/** Families that need details of nodes. */
const fromDetails = networkFamilyNames().filter((name) => /_(?:ratio|detail_|created_|updated_)/.test(`${name}_`));

test("scrapes are answered while all calls to the service hang", async () => {
  const { network, daemon } = await startDaemonOnNetwork({ config: { service: { timeout: "5m" } } });
  await waitUntil("the network is exported", async () => nodesOn(await daemon.scrape()));
  network.setFault({ kind: "hang" });
  const hung = () =>
    replyCounts(network.service).reduce((sum, { status, count }) => sum + (status === "hang" ? count : 0), 0);
  await waitUntil("calls hang", () => hung() >= 3);
  for (const encoding of ["identity", "gzip"]) {
    for (const accept of ["text/plain", "application/openmetrics-text"]) {
      const response = await daemon.ask("/metrics", { headers: { accept, "accept-encoding": encoding } });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("proxynet_node_info{");
    }
  }
  // All calls still hang, so no scrape has waited for one.
  expect(network.service.inFlight).toBe(hung());
});

test("the service is polled while scrapers do not read their responses", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await waitUntil("the network is exported", async () => nodesOn(await daemon.scrape()));
  const { port } = new URL(daemon.app.url());
  const requests = `GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`.repeat(200);
  for (let scraper = 0; scraper < 4; scraper++) {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(requests));
    socket.on("error", () => undefined).pause();
    onTestFinished(() => void socket.destroy());
  }
  const before = network.service.serial;
  await waitUntil("polling continues", () => network.service.serial > before + 50);
  await waitUntil("other scrapes are answered", async () => nodesOn(await daemon.scrape()));
});

test("scrapes cause no calls to the service", async () => {
  const { network, daemon } = await startDaemonOnNetwork({ config: { ...once, export: { deny: fromDetails } } });
  await waitUntil("every collector has succeeded", async () => {
    const page = await daemon.scrape();
    return page.select("proxywarden_collect_last_success_timestamp_seconds").length === 4;
  });
  const before = network.service.serial;
  const scraper = async () => {
    for (let scrape = 0; scrape < 20; scrape++) await daemon.scrape();
  };
  await Promise.all([scraper(), scraper()]);
  expect(network.service.serial).toBe(before);
});

test("data that no exported family needs is not fetched", async () => {
  const shown = ["proxynet_nodes", "proxynet_node_info", "proxynet_node_status"];
  const deny = networkFamilyNames().filter((name) => !shown.includes(name));
  const { network, daemon } = await startDaemonOnNetwork({ config: { export: { deny } } });
  await waitUntil("some walks have ended", () => network.service.serial >= 10);
  expect(replyCounts(network.service).map(({ endpoint }) => endpoint)).toEqual(["GET /v1/nodes"]);
  const page = await daemon.scrape();
  const families = new Set(page.samples.map(({ name }) => name).filter((name) => name.startsWith("proxynet_")));
  expect([...families].toSorted()).toEqual(shown.toSorted());
});

test("usage in percent is exported as a ratio from 0 to 1, and no counter decreases", async () => {
  const { daemon } = await startDaemonOnNetwork({
    scenario: { service: { ...defaultServiceOptions, usageScale: "percent", plan: "enterprise" } },
    config: { service: { usage_scale: "percent" } },
  });
  const usage = ["cpu", "memory", "disk"].map((part) => `proxynet_node_${part}_usage_ratio`);
  const counters = (page: Awaited<ReturnType<typeof daemon.scrape>>) =>
    page.samples.filter(({ name }) => /^prox.*_(?:total|bucket|count)$/.test(name));
  let before = await daemon.scrape();
  await waitUntil("all usage is read", async () => {
    const page = await daemon.scrape();
    for (const { name, labels, value } of counters(before)) {
      const now = page
        .select(name, labels)
        .find((each) => Object.keys(each.labels).length === Object.keys(labels).length);
      if (now !== undefined && now.value < value) throw new Error(`${name} ${JSON.stringify(labels)} decreased`);
    }
    before = page;
    return usage.every((name) => page.select(name).length >= 30);
  });
  const values = usage.flatMap((name) => before.select(name).map(({ value }) => value));
  expect(Math.min(...values)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...values)).toBeLessThanOrEqual(1);
  // If ratios were divided again, all would be below 0.01.
  expect(Math.max(...values)).toBeGreaterThan(0.1);
});
