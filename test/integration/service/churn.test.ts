import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { NETWORK_FAMILIES } from "../../../src/metrics/families/network-families.ts";
import { linesPerNode } from "../../../src/metrics/render/selection.ts";
import type { MetricsPage } from "../metrics-page.ts";
import { configText, startNetwork, startTestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

const NODES = 30;
const SESSIONS = 60;
/** Of the nodes, and of the sessions, at each walk. */
const REPLACED_SHARE = 0.5;
const WALKS = 120;
/** Different walks that a look must have shown. */
const LOOKS = 20;
const TOP_CUSTOMERS = 5;
/** A node is gone after two walks without it; where sessions named it, one walk of the sessions later. */
const WALKS_TO_LEAVE = 3;
/** Series of a node in all families together. */
const LINES_PER_NODE = NETWORK_FAMILIES.reduce((sum, family) => sum + ("fill" in family ? linesPerNode(family) : 0), 0);
/** Headers that let every walk go at once. */
const LIMIT = { "x-ratelimit-limit": "100000", "x-ratelimit-remaining": "90000" };
const everySecond = { nodes: { every: "1s" }, sessions: { every: "1s" } };
const limits = {
  plan: "enterprise",
  node_management: { requests: 100_000 },
  session_monitoring: { requests: 100_000 },
};

/** A service that replaces half of its nodes, sessions and customers at every walk, and gives each walk a version. */
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
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return { walks, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("pains 5, 7 and 14: however many nodes and customers come and go, the series stay few, and no scrape mixes two walks", async () => {
  const { walks, url } = await startChurning();
  const { clock } = await startNetwork({ speed: 20, scenario: { nodes: 0, sessions: 0 } });
  const config = configText(url, { collect: everySecond, limits, export: { top_customers: TOP_CUSTOMERS } });
  const daemon = await startTestDaemon(clock, config);
  const seen = { versions: new Set<string>(), ids: new Set<string>() };
  /** By family the most series that are of no node, before and after the middle. */
  const others = { early: new Map<string, number>(), late: new Map<string, number>() };
  await waitUntil("many walks are over", async () => {
    const page = await daemon.scrape();
    const lasting = new Set<string>();
    for (const { labels } of page.select("proxynet_node_info")) {
      seen.ids.add(labels.node_id!);
      if (isLasting(labels.node_id!)) lasting.add(labels.version!);
    }
    // Those that are gone keep what was seen last until that is settled; all others were in the last walk. None is on
    // the page where this process was held up for longer than samples stay: time is fast here.
    expect(lasting.size).toBeLessThanOrEqual(1);
    for (const version of lasting) seen.versions.add(version);
    expect(page.select("proxynet_customer_sessions").length).toBeLessThanOrEqual(TOP_CUSTOMERS + 1);
    expect(ofNodes(page).length).toBeLessThanOrEqual(LINES_PER_NODE * NODES * (1 + WALKS_TO_LEAVE * REPLACED_SHARE));
    const half = walks.nodes < WALKS / 2 ? "early" : "late";
    for (const [name, count] of countsBeside(page)) {
      others[half].set(name, Math.max(others[half].get(name) ?? 0, count));
    }
    // On a machine that is busy with other things there are fewer looks than walks.
    return walks.nodes >= WALKS && seen.versions.size > LOOKS;
  });
  expect(seen.ids.size).toBeGreaterThan(10 * NODES);
  expect(others.early.size).toBeGreaterThan(20);
  // Where this process was held up in the first half, a whole family may have been stale at every look.
  for (const [name, early] of others.early) expect(others.late.get(name) ?? 0, name).toBeLessThanOrEqual(early);
});

const isLasting = (id: string) => /^node_\d+$/.test(id);

const ofNodes = ({ samples }: MetricsPage) => samples.filter(({ labels }) => labels.node_id !== undefined);

/** Series of no node, by their family. */
function countsBeside({ samples }: MetricsPage): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { name, labels } of samples) {
    if (labels.node_id === undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
