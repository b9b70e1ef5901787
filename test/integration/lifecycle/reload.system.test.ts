import { expect, onTestFinished, test } from "vitest";
import { runDaemon } from "../../../src/cli/run.ts";
import { readSqliteState } from "../../../src/journal/sqlite/store.ts";
import { freePort } from "../../harness/servers/free-port.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import type { MetricsPage } from "../metrics-page.ts";
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

const reloadOf = async (daemon: Awaited<ReturnType<typeof startTestDaemon>>) => {
  const response = await daemon.ask("/-/reload", { method: "POST" });
  return { status: response.status, text: await response.text() };
};

test("POST /-/reload answers 400 with every error, keeps the old configuration, and sets the gauge", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === NODES);
  daemon.configure("service:\n  base_url: ftp://x\n  api_key: k\ncollect:\n  stats: {every: 1x}\n");
  const { status, text } = await reloadOf(daemon);
  expect(status).toBe(400);
  expect(text.split("\n")).toEqual([
    expect.stringMatching(
      /^proxywarden\.yaml:2:13: service\.base_url: found "ftp:\/\/x"; must be an http or https URL/,
    ),
    expect.stringMatching(/^proxywarden\.yaml:5:18: collect\.stats\.every: found "1x"; a duration is/),
    "",
  ]);
  expect((await daemon.scrape()).sum("proxywarden_config_last_reload_successful")).toBe(0);
  const rejectedAt = async () =>
    ((await (await daemon.ask("/api/v1/status")).json()) as { config_rejected_at: string | null }).config_rejected_at;
  expect(Date.parse((await rejectedAt())!)).toBeGreaterThan(0);
  const before = network.service.serial;
  await waitUntil("the old one is at work", () => network.service.serial > before + 5);
  daemon.configure(configText(network.url));
  expect(await reloadOf(daemon)).toEqual({ status: 200, text: "reloaded\n" });
  expect(await rejectedAt()).toBeNull();
});

test("POST /-/reload answers 200 only once the new configuration is active", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === NODES);
  daemon.configure(configText(network.url, { limits: { plan: { calls_per_month: 123_456 } } }));
  expect(await reloadOf(daemon)).toEqual({ status: 200, text: "reloaded\n" });
  const page = await daemon.scrape();
  expect(page.sum("proxywarden_month_calls_limit")).toBe(123_456);
  expect(page.sum("proxywarden_config_last_reload_successful")).toBe(1);
  // The data from before the reload is kept.
  expect(nodesOn(page)).toBe(NODES);
});

test("a reload by SIGHUP is journaled like one over HTTP, with its origin", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  const orders = async () => {
    const { data } = (await (await daemon.ask("/api/v1/orders")).json()) as { data: Record<string, unknown>[] };
    return data.map(({ command, operator, detail }) => [command, operator, detail]);
  };
  daemon.configure(configText(network.url, { limits: { plan: { calls_per_month: 123_456 } } }));
  await daemon.app.reload();
  daemon.configure("collect: 1\n");
  await daemon.app.reload();
  await reloadOf(daemon);
  expect(await orders()).toEqual([
    ["reload", null, expect.stringMatching(/^rejected: proxywarden\.yaml/)],
    ["reload", null, expect.stringMatching(/^SIGHUP: rejected: proxywarden\.yaml/)],
    ["reload", null, "SIGHUP: the new configuration is active"],
  ]);
});

test("a reload to another service forgets the nodes of the old one", async () => {
  const { daemon } = await startDaemonOnNetwork();
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === NODES);
  const other = await startNetwork({ scenario: { nodes: 7, sessions: 20, seed: 2 } });
  daemon.configure(configText(other.url));
  expect(await reloadOf(daemon)).toMatchObject({ status: 200 });
  expect([null, 7]).toContain(nodesOn(await daemon.scrape()));
  await waitUntil("the other network is seen, alone", async () => nodesOn(await daemon.scrape()) === 7);
});

test("a reload moves web.listen: only the new address answers", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  const before = daemon.app.url();
  daemon.configure(configText(network.url, { web: { listen: "127.0.0.2:0" } }));
  expect(await reloadOf(daemon)).toMatchObject({ status: 200 });
  expect(daemon.app.url()).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === NODES);
  await waitUntil("the old address is closed", () =>
    fetch(`${before}/-/healthy`, { headers: { connection: "close" } }).then(
      () => false,
      () => true,
    ),
  );
});

test("a reload to another host on the same port is rejected, because the daemon itself uses the port", async () => {
  const port = await freePort();
  const network = await startNetwork();
  const listenOn = (host: string) => configText(network.url, { web: { listen: `${host}:${port}` } });
  const daemon = await startTestDaemon(network.clock, listenOn("127.0.0.1"));
  daemon.configure(listenOn("0.0.0.0"));
  expect(await reloadOf(daemon)).toEqual({
    status: 400,
    text: "web.listen: the host can't change on the same port while the daemon runs; restart the daemon to change it\n",
  });
});

test("a reload is rejected if an address is in use, a key's file is missing or state.path changes", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === NODES);
  const taken = new URL(network.url).host;
  daemon.configure(configText(network.url, { web: { listen: taken } }));
  expect(await reloadOf(daemon)).toMatchObject({
    status: 400,
    text: expect.stringMatching(`^web\\.listen: can't listen on ${taken}: .*EADDRINUSE`),
  });
  daemon.configure(configText(network.url, { service: { api_key_file: "/nowhere/key" } }));
  expect(await reloadOf(daemon)).toMatchObject({ status: 400, text: expect.stringContaining("service.api_key_file") });
  daemon.configure(configText(network.url, { state: { path: "/var/lib/elsewhere" } }));
  expect(await reloadOf(daemon)).toMatchObject({
    status: 400,
    text: expect.stringMatching(/^state\.path: .*can't change from \S+ while the daemon runs; restart the daemon/),
  });
  const before = network.service.serial;
  await waitUntil("the old one is at work", () => network.service.serial > before + 5);
});

test("a key renewed in its file is used without a reload, soon after the service rejected the old one", async () => {
  const scopes = ["nodes:read", "sessions:read"];
  const network = await startNetwork({ scenario: { keys: [{ key: "new-key", scopes }] } });
  const folder = createTempFolder();
  const file = folder.write("key", "old-key\n");
  const daemon = await startTestDaemon(network.clock, configText(network.url, { service: { api_key_file: file } }));
  const refused = await waitUntil("the old key is refused", async () => {
    const page = await daemon.scrape();
    return failures(page, "nodes", "unauthorized") > 0 && page;
  });
  expect(nodesOn(refused)).toBeNull();
  folder.write("key", "new-key\n");
  await waitUntil("the nodes are seen with the new key", async () => nodesOn(await daemon.scrape()) === NODES);
  const logged = JSON.stringify(daemon.log.lines);
  expect(logged).toContain("the API key is not accepted");
  expect(logged).not.toMatch(/old-key|new-key/);
});

const LARGE_FLEET = 20_000;

test("right after a reload every route shows the data from before, by the new configuration", async () => {
  // In real time, so nothing is collected between the reload and the requests after it. The metrics of so many nodes
  // are not rendered within one turn of the event loop.
  const { network, daemon } = await startDaemonOnNetwork({ speed: 1, scenario: { nodes: LARGE_FLEET } });
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === LARGE_FLEET);
  daemon.configure(configText(network.url, { export: { deny: ["proxynet_node_info"] } }));
  expect(await reloadOf(daemon)).toMatchObject({ status: 200 });
  const page = await daemon.scrape();
  const { pagination } = (await (await daemon.ask("/api/v1/nodes")).json()) as { pagination: object };
  expect(pagination).toMatchObject({ total: LARGE_FLEET });
  expect(nodesOn(page)).toBe(LARGE_FLEET);
  expect(page.select("proxynet_node_info")).toHaveLength(0);
});

/** A walk of the nodes takes longer than the time between two reloads. */
const SLOW = { kind: "slow_drip", bytesPerSecond: 8_000 } as const;

/** Reloads repeatedly until a walk of the nodes that began in the meantime has completed. */
async function reloadUntilWalked(
  daemon: Awaited<ReturnType<typeof startTestDaemon>>,
  beforeEach: (reload: number) => void,
) {
  const walkedAt = (page: MetricsPage) =>
    page.sum("proxywarden_collect_last_success_timestamp_seconds", { collector: "nodes" })!;
  let reloads = 0;
  const before = walkedAt(await daemon.scrape());
  // One walk may have been under way at the first reload.
  let walks = 0;
  let last = before;
  await waitUntil("walks complete in spite of reloads", async () => {
    beforeEach(reloads++);
    expect(await reloadOf(daemon)).toMatchObject({ status: 200 });
    const page = await daemon.scrape();
    if (walkedAt(page) > last) walks++;
    last = walkedAt(page);
    return walks > 1;
  });
  await waitUntil("the nodes are still seen", async () => nodesOn(await daemon.scrape()) === NODES);
}

test("reloads of an unchanged file replace nothing: walks complete, and the same controller continues", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === NODES);
  const remediation = daemon.app.remediation();
  network.setFault(SLOW, "/v1/nodes?");
  await reloadUntilWalked(daemon, () => {});
  expect(daemon.app.remediation()).toBe(remediation);
});

test("a reload that changes no setting of the collectors keeps them running", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await waitUntil("the nodes are seen", async () => nodesOn(await daemon.scrape()) === NODES);
  network.setFault(SLOW, "/v1/nodes?");
  await reloadUntilWalked(daemon, (reload) => {
    daemon.configure(configText(network.url, { safety: { cooldown: `${30 + reload}m` } }));
  });
});

test("a SIGHUP during the start loads a change that was made after the configuration was read", async () => {
  const folder = createTempFolder();
  const write = (every: string) =>
    folder.write(
      "proxywarden.yaml",
      configText("http://127.0.0.1:9", {
        state: { path: "state" },
        log: { level: "error" },
        collect: { nodes: { every } },
      }),
    );
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const ignored = { write() {} };
  const onSighup = (reload: () => void) => {
    write("6s");
    reload();
  };
  const context = { env: {}, out: ignored, err: ignored, stop: stop.signal, version: "0.0.0-test", onSighup };
  const ended = runDaemon({ config: write("5s") }, context);
  const [reload] = await waitUntil("the reload is journaled", async () => {
    const rows = await readSqliteState(folder.pathOf("state"), (journal) => journal.operatorCommands({ limit: 1 }));
    return rows.ok && rows.value.length > 0 && rows.value;
  });
  expect(reload).toMatchObject({
    command: "reload",
    operator: null,
    detail: "SIGHUP: the new configuration is active",
  });
  stop.abort();
  await ended;
});
