import { createServer } from "node:http";
import { expect, test } from "vitest";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { listen } from "../../harness/servers/free-port.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { openMetricsSamples, textSamples } from "../prometheus/parsers.ts";
import {
  configText,
  failures,
  NODES,
  nodesOn,
  startDaemonOnNetwork,
  startNetwork,
  startTestDaemon,
} from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

test("with a key without nodes:read, sessions and statistics are exported and the log names the missing scope", async () => {
  const keys = [{ key: SIMULATION_KEY, scopes: ["sessions:read"] }];
  const { daemon } = await startDaemonOnNetwork({ scenario: { keys } });
  const page = await waitUntil("the refusals are counted and sessions are exported", async () => {
    const seen = await daemon.scrape();
    const shown = seen.sum("proxynet_sessions") !== null && seen.sum("proxynet_stats_active_sessions") !== null;
    return shown && failures(seen, "nodes", "forbidden") > 0 && seen;
  });
  expect(page.select("proxynet_nodes")).toEqual([]);
  const output = daemon.log.lines.filter(({ fields }) => fields.collector === "nodes");
  expect(output).toEqual([
    {
      level: "warn",
      message: "collector failed",
      fields: {
        collector: "nodes",
        reason: "forbidden",
        problem: expect.stringMatching(
          /the API key seems to lack the scope nodes:read, or a cap of the plan is reached; the service said .*insufficient_scope/,
        ),
      },
    },
  ]);
});

test("an unreachable service is counted and logged once, and polled as soon as it is back", async () => {
  const { clock } = await startNetwork();
  const port = await freedPort();
  const daemon = await startTestDaemon(clock, configText(`http://127.0.0.1:${port}`));
  await waitUntil("failures are counted", async () => failures(await daemon.scrape(), "nodes", "unreachable") >= 3);
  const output = daemon.log.lines.filter(({ fields }) => fields.collector === "nodes");
  expect(output.map(({ fields }) => fields.problem)).toEqual([
    expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`),
  ]);
  expect((await daemon.ask("/-/ready")).status).toBe(200);
  expect(await (await daemon.ask("/api/v1/status")).json()).toMatchObject({
    collectors: { nodes: { failure: { reason: "unreachable" } } },
  });
  await startNetwork({ port });
  await waitUntil("the nodes are exported", async () => nodesOn(await daemon.scrape()) === NODES);
});

test("a node name with quote, line feed and backslash survives Prometheus' own parsers", async () => {
  const name = 'we"ird\na\\';
  const url = await serveNodes([{ id: "node_1", name, status: "on fire", region: name, uptime_hours: 1 }]);
  const { clock } = await startNetwork();
  const daemon = await startTestDaemon(clock, configText(url));
  const page = await waitUntil("the node is exported", async () => {
    const seen = await daemon.scrape();
    return seen.select("proxynet_node_info").length === 1 && seen;
  });
  expect(page.select("proxynet_node_info")[0]!.labels).toMatchObject({ node_id: "node_1", name, region: name });
  const openMetrics = await daemon.ask("/metrics", { headers: { accept: "application/openmetrics-text" } });
  for (const samples of [await textSamples(page.text), await openMetricsSamples(await openMetrics.text())]) {
    const info = samples.find(([sample]) => sample === "proxynet_node_info");
    expect(info?.[1]).toMatchObject({ node_id: "node_1", name, region: name });
  }
  const { data } = (await (await daemon.ask("/api/v1/nodes")).json()) as { data: { name: string; status: string }[] };
  expect(data).toMatchObject([{ id: "node_1", name, status: "unknown" }]);
});

test("an unknown status and a string instead of a number are counted, and the log quotes them with the valid values", async () => {
  const url = await serveNodes([
    { id: "node_1", name: "a", status: "on fire" },
    { id: "node_2", name: "b", status: "online", uptime_hours: "12" },
    { id: "node_3", name: "c", status: "online", uptime_hours: 12 },
  ]);
  const { clock } = await startNetwork();
  const daemon = await startTestDaemon(clock, configText(url));
  const page = await waitUntil("the valid node is exported", async () => {
    const seen = await daemon.scrape();
    return seen.select("proxynet_node_uptime_seconds").length > 0 && seen;
  });
  expect(page.select("proxynet_node_uptime_seconds")).toMatchObject([{ labels: { node_id: "node_3" }, value: 43_200 }]);
  expect(page.sum("proxynet_node_status", { node_id: "node_1", status: "unknown" })).toBe(1);
  const rejected = page.select("proxywarden_records_rejected_total", { collector: "nodes" });
  const reasons = rejected.filter(({ value }) => value > 0).map(({ labels }) => labels.reason);
  expect(reasons.toSorted()).toEqual(["unknown_status", "wrong_type"]);
  const lines = await waitUntil("the walk has ended and the log names the rejected records", () => {
    const found = daemon.log.lines.filter(({ message }) => message === "records do not match the API documentation");
    return found.length > 0 && found;
  });
  expect(lines.map(({ fields }) => fields)).toMatchObject([
    {
      collector: "nodes",
      records: 1,
      reason: "unknown_status",
      id: "node_1",
      detail: 'status is "on fire"; known values: online, offline, quarantined, rebooting, maintenance',
    },
    { collector: "nodes", records: 1, reason: "wrong_type", id: "node_2" },
  ]);
});

/** Starts a service that has only a list of these nodes. Returns its URL. */
async function serveNodes(data: readonly object[]): Promise<string> {
  const server = createServer((request, response) => {
    const isList = request.url?.startsWith("/v1/nodes?page=1&") === true;
    response.writeHead(isList ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify({ data, pagination: { page: 1, limit: 1_000, total: data.length } }));
  });
  return `http://127.0.0.1:${await listenInTest(server)}`;
}

/** Returns a port that was in use and is free now. */
async function freedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
