import { expect, test } from "vitest";
import { replyCounts } from "../../../src/simulator/http/service.ts";
import { runInProcess } from "../../cli/terminal.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { type MetricsPage, parseMetricsPage } from "../metrics-page.ts";
import { type RunningProcess, startCommand, waitForStderr } from "../process.ts";
import { type ConfigSections, configText, nodesOn, startNetwork } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** A child process runs in real time: this is the shortest interval that a configuration accepts. */
const fastCollection: ConfigSections = {
  collect: { nodes: { every: "1s" }, sessions: { every: "1s" }, stats: { every: "1s" } },
};

/** The most calls that a daemon has under way: two lists of three pages, four details, statistics and hours. */
const CALLS_AT_ONCE_MAX = 12;
/** Docker kills a container 10 s after SIGTERM. This includes the start of the daemon. */
const TEST_MS_MAX = 15_000;

/** Writes a configuration with the state in the same folder. */
const configure = (folder: TempFolder, serviceUrl: string, sections: ConfigSections = {}): string =>
  folder.write(
    "proxywarden.yaml",
    configText(serviceUrl, { ...fastCollection, state: { path: folder.pathOf("state") }, ...sections }),
  );

/** Starts `run`, and waits until it listens. */
async function startRun(file: string): Promise<{ readonly daemon: RunningProcess; readonly url: string }> {
  const daemon = startCommand("run", "--config", file);
  const [, url] = await waitForStderr(daemon, /"url":"(http:[^"]+)".*"msg":"daemon started"/);
  return { daemon, url: url! };
}

const scrape = async (url: string): Promise<MetricsPage> =>
  parseMetricsPage(await (await fetch(`${url}/metrics`)).text());

const untilPage = (what: string, url: string, holds: (page: MetricsPage) => boolean) =>
  waitUntil(what, async () => {
    const page = await scrape(url);
    return holds(page) && page;
  });

test("SIGHUP activates a valid configuration, and keeps the old one if the new one is invalid", async () => {
  const network = await startNetwork({ speed: 1 });
  const folder = createTempFolder();
  const file = configure(folder, network.url);
  const { daemon, url } = await startRun(file);
  const reloaded = (page: MetricsPage) => page.sum("proxywarden_config_last_reload_successful");
  const before = await untilPage("nodes are seen", url, (page) => (nodesOn(page) ?? 0) > 0);
  expect(reloaded(before)).toBe(1);
  expect(before.select("proxynet_node_info").length).toBeGreaterThan(0);

  folder.write("proxywarden.yaml", "service:\n  base_url: 17\n");
  daemon.kill("SIGHUP");
  await waitForStderr(daemon, /proxywarden\.yaml:2:13: service\.base_url: found 17.*configuration rejected/);
  const refused = await scrape(url);
  expect(reloaded(refused)).toBe(0);
  expect(nodesOn(refused)).toBeGreaterThan(0);

  configure(folder, network.url, { export: { deny: ["proxynet_node_info"] } });
  daemon.kill("SIGHUP");
  await waitForStderr(daemon, /configuration reloaded/);
  const after = await untilPage(
    "the denied family is gone",
    url,
    (page) => page.select("proxynet_node_info").length === 0,
  );
  expect(reloaded(after)).toBe(1);
  expect(nodesOn(after)).toBeGreaterThan(0);
});

test(
  "SIGTERM ends the daemon with 0 while the service hangs, and releases its state folder",
  async () => {
    const network = await startNetwork({ speed: 1 });
    network.setFault({ kind: "hang" });
    const folder = createTempFolder();
    const file = configure(folder, network.url, { service: { timeout: "5m" } });
    const { daemon } = await startRun(file);
    await waitUntil("calls hang", () => network.service.inFlight > 0);
    daemon.kill("SIGTERM");
    expect(await daemon.ended).toMatchObject({ code: 0, out: "" });
    expect(daemon.err()).toContain('"msg":"stopping"');
    await waitUntil("its calls are over", () => network.service.inFlight === 0);
    await startRun(file);
  },
  TEST_MS_MAX,
);

test(
  "SIGTERM during a reload ends the daemon with 0",
  async () => {
    const network = await startNetwork({ speed: 1 });
    const { daemon } = await startRun(configure(createTempFolder(), network.url));
    await waitUntil("calls are made", () => network.service.serial > 0);
    daemon.kill("SIGHUP");
    daemon.kill("SIGTERM");
    expect((await daemon.ended).code).toBe(0);
  },
  TEST_MS_MAX,
);

test("a second daemon on the same state folder is rejected, and the first one continues", async () => {
  const network = await startNetwork({ speed: 1 });
  const folder = createTempFolder();
  const file = configure(folder, network.url);
  const { url } = await startRun(file);
  const second = await runInProcess("run", "--config", file);
  expect(second).toMatchObject({ code: 1, out: "" });
  expect(second.err).toContain(
    `proxywarden: state.path: ${folder.pathOf("state")} is held by another proxywarden; stop it, or give this one a state.path of its own\n`,
  );
  await untilPage("the first one sees the nodes", url, (page) => (nodesOn(page) ?? 0) > 0);
});

test("after SIGKILL the next daemon has the same monthly count of calls as the service", async () => {
  const network = await startNetwork({ speed: 1 });
  const calls = () => replyCounts(network.service).reduce((sum, { count }) => sum + count, 0);
  const folder = createTempFolder();
  const file = configure(folder, network.url, { limits: { plan: "business", month: { used: 1_000 } } });
  const { daemon } = await startRun(file);
  await waitUntil("calls are made", () => calls() >= 3);
  daemon.kill("SIGKILL");
  expect((await daemon.ended).code).toBeNull();
  // No calls are sent any more, so the service's count is final.
  const made = calls();
  network.setFault({ kind: "hang" });
  const { url } = await startRun(file);
  const page = await scrape(url);
  const month = page.sum("proxywarden_month_calls")!;
  // A call is counted before it is sent, so calls under way at the end may not have arrived.
  expect(month).toBeGreaterThanOrEqual(1_000 + made);
  expect(month).toBeLessThanOrEqual(1_000 + calls() + CALLS_AT_ONCE_MAX);
});
