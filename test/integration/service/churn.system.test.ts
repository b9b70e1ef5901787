import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { NETWORK_FAMILIES } from "../../../src/metrics/families/network-families.ts";
import { linesPerNode } from "../../../src/metrics/render/node-lines.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import type { MetricsPage } from "../metrics-page.ts";
import { configText, startNetwork, startTestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

const NODES = 30;
const SESSIONS = 60;
/** Share of nodes and of sessions replaced at each walk. */
const REPLACED_SHARE = 0.5;
const WALKS = 120;
/** Different walks that scrapes must have shown. */
const WALKS_SEEN_MIN = 20;
const TOP_CUSTOMERS = 5;
/** A node is gone after two walks without it; if sessions named it, after one more walk of the sessions. */
const WALKS_TO_LEAVE = 3;
/** Series of a node over all families. */
const LINES_PER_NODE = NETWORK_FAMILIES.reduce((sum, family) => sum + ("fill" in family ? linesPerNode(family) : 0), 0);
/** Headers of limits that delay no walk. */
const LIMIT = { "x-ratelimit-limit": "100000", "x-ratelimit-remaining": "90000" };
const everySecond = { nodes: { every: "1s" }, sessions: { every: "1s" } };
const limits = {
  plan: "enterprise",
  node_management: { requests: 100_000 },
  session_monitoring: { requests: 100_000 },
};

/**
 * Starts a service that replaces half of its nodes, sessions and customers at every walk. The version of a node is the
 * walk.
 */
async function startChurning() {
  const walks = { nodes: 0, sessions: 0 };
  const named = (kind: "nodes" | "sessions", index: number, count: number) =>
    index < count * REPLACED_SHARE ? `${index}` : `${index}_${walks[kind]}`;
  const nodes = () =>
    Array.from({ length: NODES }, (_, index) => ({
      id: `node_${named("nodes", index, NODES)}`,
      name: `n${named("nodes", index, NODES)}`,
      status: "online",
      country: "DE",
      region: `r${index % 3}`,
      version: `v${walks.nodes}`,
      uptime_hours: walks.nodes,
    }));
  const sessions = () =>
    Array.from({ length: SESSIONS }, (_, index) => ({
      id: `sess_${named("sessions", index, SESSIONS)}`,
      customer_id: `cust_${named("sessions", index, SESSIONS)}`,
      node_id: `node_${named("nodes", index % NODES, NODES)}`,
      status: "active",
      session_type: "https",
      country: "DE",
      bytes_sent: walks.sessions * 1_000,
      bytes_received: 0,
    }));
  const answer = ({ url = "" }: IncomingMessage, response: ServerResponse) => {
    const kind = url.startsWith("/v1/nodes?") ? "nodes" : url.startsWith("/v1/sessions?") ? "sessions" : null;
    if (kind === null || !url.includes("page=1&")) return void response.writeHead(404, LIMIT).end();
    walks[kind]++;
    const data = kind === "nodes" ? nodes() : sessions();
    response.writeHead(200, { "content-type": "application/json", ...LIMIT });
    return void response.end(JSON.stringify({ data, pagination: { page: 1, limit: 1_000, total: data.length } }));
  };
  const server = createServer(answer);
  return { walks, url: `http://127.0.0.1:${await listenInTest(server)}` };
}

test("series stay bounded while nodes and customers come and go, and no scrape mixes two walks", async () => {
  const { walks, url } = await startChurning();
  const { clock } = await startNetwork({ speed: 20, scenario: { nodes: 0, sessions: 0 } });
  const config = configText(url, { collect: everySecond, limits, export: { top_customers: TOP_CUSTOMERS } });
  const daemon = await startTestDaemon(clock, config);
  const seen = { versions: new Set<string>(), ids: new Set<string>() };
  /** Maximum number of series without a node by family, in the first and the second half. */
  const seriesMax = { early: new Map<string, number>(), late: new Map<string, number>() };
  await waitUntil("many walks have ended", async () => {
    const page = await daemon.scrape();
    const permanent = new Set<string>();
    for (const { labels } of page.select("proxynet_node_info")) {
      seen.ids.add(labels.node_id!);
      if (isPermanent(labels.node_id!)) permanent.add(labels.version!);
    }
    // Nodes that left keep their last record until they are known to be gone; all others are from the last walk. There
    // may be none: time is so fast that a delayed process finds all samples stale.
    expect(permanent.size).toBeLessThanOrEqual(1);
    for (const version of permanent) seen.versions.add(version);
    expect(page.select("proxynet_customer_sessions").length).toBeLessThanOrEqual(TOP_CUSTOMERS + 1);
    expect(seriesOfNodes(page).length).toBeLessThanOrEqual(
      LINES_PER_NODE * NODES * (1 + WALKS_TO_LEAVE * REPLACED_SHARE),
    );
    const half = walks.nodes < WALKS / 2 ? "early" : "late";
    for (const [name, count] of countsWithoutNode(page)) {
      // Node.js adds series when a kind of garbage collection runs for the first time, and a delayed process has timeouts.
      if (name.startsWith("nodejs_") || name === "proxywarden_api_requests_total") continue;
      seriesMax[half].set(name, Math.max(seriesMax[half].get(name) ?? 0, count));
    }
    // On a busy machine there are fewer scrapes than walks.
    return walks.nodes >= WALKS && seen.versions.size > WALKS_SEEN_MIN;
  });
  expect(seen.ids.size).toBeGreaterThan(10 * NODES);
  expect(seriesMax.early.size).toBeGreaterThan(20);
  // If the process was delayed in the first half, a family may have been stale at every scrape.
  for (const [name, early] of seriesMax.early) expect(seriesMax.late.get(name) ?? 0, name).toBeLessThanOrEqual(early);
});

const isPermanent = (id: string) => /^node_\d+$/.test(id);

const seriesOfNodes = ({ samples }: MetricsPage) => samples.filter(({ labels }) => labels.node_id !== undefined);

/** Counts the series without a node by family. */
function countsWithoutNode({ samples }: MetricsPage): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { name, labels } of samples) {
    if (labels.node_id === undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
