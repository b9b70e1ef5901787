import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { networkFamilyNames } from "../../../src/metrics/families/network-families.ts";
import { defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { replyCounts } from "../../../src/simulator/inspection.ts";
import { nodesOn, startDaemonOnNetwork } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** Collected once in the life of a test: nothing is due again before it ends. */
const once = { collect: { nodes: { every: "7d" }, sessions: { every: "7d" }, stats: { every: "7d" } } };

/** Families that need no other call than the walk of the nodes. */
const fromDetails = networkFamilyNames().filter((name) => /_(?:ratio|detail_|created_|updated_)/.test(`${name}_`));

test("pain 1: while every request of the service hangs, scrapes are answered", async () => {
  const { network, daemon } = await startDaemonOnNetwork({ config: { service: { timeout: "5m" } } });
  await waitUntil("the network is seen", async () => nodesOn(await daemon.scrape()));
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
  // Every call that ever hung still does: none of them had to end for the answers to come.
  expect(network.service.inFlight).toBe(hung());
});

test("pain 1: while scrapers read none of the answers that they asked for, the service is polled as ever", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await waitUntil("the network is seen", async () => nodesOn(await daemon.scrape()));
  const { port } = new URL(daemon.app.url());
  const asked = `GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`.repeat(200);
  for (let scraper = 0; scraper < 4; scraper++) {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(asked));
    socket.on("error", () => undefined).pause();
    onTestFinished(() => void socket.destroy());
  }
  const before = network.service.serial;
  await waitUntil("the service is asked on", () => network.service.serial > before + 50);
  await waitUntil("others still scrape", async () => nodesOn(await daemon.scrape()));
});

test("pain 8: two scrapers cost the service no call", async () => {
  const { network, daemon } = await startDaemonOnNetwork({ config: { ...once, export: { deny: fromDetails } } });
  await waitUntil("all was collected once", async () => {
    const page = await daemon.scrape();
    return page.select("proxywarden_collect_last_success_timestamp_seconds").length === 4;
  });
  const before = network.service.serial;
  const scraper = async () => {
    for (let scrape = 0; scrape < 100; scrape++) await daemon.scrape();
  };
  await Promise.all([scraper(), scraper()]);
  expect(network.service.serial).toBe(before);
});

test("pain 6: what nothing on the page shows is not fetched", async () => {
  const shown = ["proxynet_nodes", "proxynet_node_info", "proxynet_node_status"];
  const deny = networkFamilyNames().filter((name) => !shown.includes(name));
  const { network, daemon } = await startDaemonOnNetwork({ config: { export: { deny } } });
  await waitUntil("some walks are over", () => network.service.serial >= 10);
  expect(replyCounts(network.service).map(({ endpoint }) => endpoint)).toEqual(["GET /v1/nodes"]);
  const page = await daemon.scrape();
  const families = new Set(page.samples.map(({ name }) => name).filter((name) => name.startsWith("proxynet_")));
  expect([...families].toSorted()).toEqual(shown.toSorted());
});

test("pain 11: usage is a ratio from 0 to 1, in whichever scale the service writes it, and no counter falls", async () => {
  const { daemon } = await startDaemonOnNetwork({
    scenario: { service: { ...defaultServiceOptions, usageScale: "percent", plan: "enterprise" } },
    config: { service: { usage_scale: "percent" } },
  });
  const usage = ["cpu", "memory", "disk"].map((part) => `proxynet_node_${part}_usage_ratio`);
  const counters = (page: Awaited<ReturnType<typeof daemon.scrape>>) =>
    page.samples.filter(({ name }) => /^prox.*_(?:total|bucket|count)$/.test(name));
  let before = await daemon.scrape();
  await waitUntil("every usage is read", async () => {
    const page = await daemon.scrape();
    for (const { name, labels, value } of counters(before)) {
      const now = page
        .select(name, labels)
        .find((each) => Object.keys(each.labels).length === Object.keys(labels).length);
      if (now !== undefined && now.value < value) throw new Error(`${name} ${JSON.stringify(labels)} fell`);
    }
    before = page;
    return usage.every((name) => page.select(name).length >= 30);
  });
  const values = usage.flatMap((name) => before.select(name).map(({ value }) => value));
  expect(Math.min(...values)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...values)).toBeLessThanOrEqual(1);
  // Not all below a hundredth either, as they would be if a ratio were divided once more.
  expect(Math.max(...values)).toBeGreaterThan(0.1);
});
