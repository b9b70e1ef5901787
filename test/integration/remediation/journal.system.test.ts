import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { actionOf, episodeOf } from "../../journal/arbitrary-changes.ts";
import { parseMetricsPage } from "../metrics-page.ts";
import { type RunningProcess, requireProgram, runProgram, waitForStderr } from "../process.ts";
import { waitUntil } from "../wait-until.ts";
import {
  type HealingSetup,
  type RunningDaemon,
  rebootOffline,
  startCrashingDaemon,
  startDaemonFor,
  startHealingSetup,
} from "./healing-daemon.ts";

/** Starts a setup with an unhealthy node and the journal of an earlier daemon. */
async function startWithFailedNode() {
  const setup = await startHealingSetup();
  setup.interventions.startFailure(setup.nodes[0]!, { failureMode: "outage", remedy: "reboot" });
  const config = setup.writeConfig([rebootOffline()]);
  const store = orThrow(openSqliteStore(setup.folder.pathOf("state")));
  store.journal.commit([
    { kind: "episode", row: episodeOf(1) },
    { kind: "action", row: actionOf(2, "ep-1") },
  ]);
  store.close();
  return { setup, config, database: setup.folder.pathOf("state/proxywarden.db") };
}

/** Expects that the daemon collects and reports the problem, but takes no action. */
async function expectNoActions(
  { nodes, serviceProxy }: HealingSetup,
  daemon: RunningDaemon,
  problem: RegExp,
): Promise<void> {
  await waitUntil(
    "the policy fires",
    async () => (await daemon.explain(nodes[0]!)).policies[0]?.timer?.state === "firing",
  );
  // The nodes are published shortly after they become trusted.
  const page = await waitUntil("the nodes are trusted and exported", async () => {
    const scraped = await daemon.scrape();
    const isTrusted = scraped.sum("proxywarden_trusted") === 1;
    return isTrusted && scraped.sum("proxynet_nodes") === nodes.length && scraped;
  });
  expect(page.sum("proxywarden_journal_writable")).toBe(0);
  expect(await daemon.reasons(nodes[0]!)).toEqual(["journal"]);
  const ready = await daemon.ask("/-/ready");
  expect({ status: ready.status, text: await ready.text() }).toEqual({
    status: 503,
    text: expect.stringMatching(problem),
  });
  expect(daemon.log.lines.filter(({ level }) => level === "error")).toContainEqual({
    level: "error",
    message: "journal damaged: no action is taken, and state is lost at exit",
    fields: { problem: expect.stringMatching(problem) },
  });
  // An operator command would be lost at exit.
  expect(await daemon.sendCommand("/api/v1/pause")).toMatchObject({ status: 503 });
  expect(serviceProxy.postRequests).toEqual([]);
}

test("with a journal that is not a database the daemon collects and serves, is not ready, logs an error, and takes no action", async () => {
  const { setup, config, database } = await startWithFailedNode();
  writeFileSync(database, "noise ".repeat(10_000));
  const daemon = await startDaemonFor(setup, config);
  await expectNoActions(
    setup,
    daemon,
    /proxywarden\.db is damaged \(file is not a database\); put a backup in its place.*; then restart the daemon\s*$/,
  );
});

test("with an unreadable row in the journal the daemon takes no action", async () => {
  const { setup, config, database } = await startWithFailedNode();
  const broken = new DatabaseSync(database);
  broken.exec("UPDATE episodes SET body = substr(body, 1, 40)");
  broken.close();
  const daemon = await startDaemonFor(setup, config);
  await expectNoActions(
    setup,
    daemon,
    /the journal in \S+ can't be read \(.*JSON.*\); put a backup in its place.*; then restart the daemon\s*$/,
  );
});

/** Limits the size of the files that a process writes, as if the disk were full. */
const limitFileSize = ({ pid }: RunningProcess, bytes: number | "unlimited") =>
  runProgram(requireProgram("/usr/bin/prlimit", "util-linux"), [`--pid=${pid}`, `--fsize=${bytes}:unlimited`], "");

test("with a full disk no node is touched while the journal can't be written, and actions continue once there is space", async () => {
  const setup = await startHealingSetup();
  const config = setup.writeConfig([rebootOffline()]);
  const daemon = startCrashingDaemon(config);
  const [, url] = await waitForStderr(daemon, /"url":"(http:[^"]+)".*"msg":"daemon started"/);
  const probe = async () => parseMetricsPage(await (await fetch(`${url}/metrics`)).text());
  await waitUntil("it is trusted", async () => (await probe()).sum("proxywarden_trusted") === 1);
  await limitFileSize(daemon, 0);
  setup.interventions.startFailure(setup.nodes[0]!, { failureMode: "outage", remedy: "reboot" });
  await waitForStderr(daemon, /"level":"error".*"msg":"the journal can't be written: no action is taken until it can"/);
  await waitUntil("the node is held for it", async () => {
    const page = await probe();
    return page.sum("proxywarden_decisions_total", { verdict: "hold", reason: "journal" }) === 1;
  });
  const ready = await fetch(`${url}/-/ready`);
  expect({ status: ready.status, text: await ready.text() }).toEqual({
    status: 503,
    text: expect.stringMatching(/the journal can't be written: disk I\/O error/),
  });
  expect((await probe()).sum("proxywarden_journal_writable")).toBe(0);
  expect(setup.serviceProxy.postRequests).toEqual([]);

  await limitFileSize(daemon, "unlimited");
  await waitForStderr(daemon, /"msg":"the journal can be written again"/);
  await waitForStderr(daemon, /"state":"healed"/);
  expect(setup.serviceProxy.postRequests).toHaveLength(1);
  expect((await fetch(`${url}/-/ready`)).status).toBe(200);
});
