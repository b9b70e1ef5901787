import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openStore } from "../../../src/journal/sqlite.ts";
import { actionOf, episodeOf } from "../../journal/arbitrary-changes.ts";
import { type Clinic, type Doctor, rebootOffline, startClinic, startDoctor, startMortal } from "./healing-daemon.ts";
import { readPage } from "../metrics-page.ts";
import { type Running, runTool, said, tool } from "../process.ts";
import { until } from "../wait-until.ts";

/** A clinic with an ill node, and a journal that a daemon has left. */
async function startWithJournal() {
  const clinic = await startClinic();
  clinic.people.fallIll(clinic.nodes[0]!, { ailment: "outage", cure: "reboot" });
  const prescription = clinic.prescribe([rebootOffline()]);
  const store = openStore(clinic.folder.at("state"));
  if (!store.ok) throw new Error(store.error.message);
  store.value.journal.commit([
    { kind: "episode", row: episodeOf(1) },
    { kind: "action", row: actionOf(2, "ep-1") },
  ]);
  store.value.close();
  return { clinic, prescription, database: clinic.folder.at("state/proxywarden.db") };
}

/** The daemon watches and says what is wrong; it touches nobody. */
async function expectIdle({ nodes, gate }: Clinic, doctor: Doctor, problem: RegExp): Promise<void> {
  await until("the policy fires", async () => (await doctor.explain(nodes[0]!)).policies[0]?.timer?.state === "firing");
  await until("it is trusted", async () => (await doctor.look()).sum("proxywarden_trusted") === 1);
  const page = await doctor.look();
  expect(page.sum("proxynet_nodes")).toBe(nodes.length);
  expect(page.sum("proxywarden_journal_writable")).toBe(0);
  expect(await doctor.reasons(nodes[0]!)).toEqual(["journal"]);
  const ready = await doctor.ask("/-/ready");
  expect({ status: ready.status, text: await ready.text() }).toEqual({
    status: 503,
    text: expect.stringMatching(problem),
  });
  expect(doctor.log.lines.filter(({ level }) => level === "error")).toContainEqual({
    level: "error",
    message: "the journal is damaged: no node is touched, and nothing outlives this process",
    fields: { problem: expect.stringMatching(problem) },
  });
  // What a person orders would be forgotten with the process.
  expect(await doctor.order("/api/v1/pause")).toMatchObject({ status: 503 });
  expect(gate.posts).toEqual([]);
}

test("a journal that is no database: the daemon watches and serves, is not ready, says so loudly, and touches nobody", async () => {
  const { clinic, prescription, database } = await startWithJournal();
  writeFileSync(database, "noise ".repeat(10_000));
  const doctor = await startDoctor(clinic, prescription);
  await expectIdle(clinic, doctor, /proxywarden\.db is damaged \(file is not a database\); put a backup in its place/);
});

test("a journal with a row that nobody can read: the same", async () => {
  const { clinic, prescription, database } = await startWithJournal();
  const broken = new DatabaseSync(database);
  broken.exec("UPDATE episodes SET body = substr(body, 1, 40)");
  broken.close();
  const doctor = await startDoctor(clinic, prescription);
  await expectIdle(clinic, doctor, /the journal in \S+ can't be read \(.*JSON.*\); put a backup in its place/);
});

/** Lets a process write files of so many bytes at most, as if the disk were full behind them. */
const limitFiles = ({ pid }: Running, bytes: number | "unlimited") =>
  runTool(tool("/usr/bin/prlimit", "util-linux"), [`--pid=${pid}`, `--fsize=${bytes}:unlimited`], "");

test("a disk that fills up: nobody is touched while the journal can't be written, and it goes on once there is room", async () => {
  const clinic = await startClinic();
  const prescription = clinic.prescribe([rebootOffline()]);
  const daemon = startMortal(prescription);
  const [, url] = await said(daemon, /"url":"(http:[^"]+)".*"msg":"watching"/);
  const look = async () => readPage(await (await fetch(`${url}/metrics`)).text());
  await until("it is trusted", async () => (await look()).sum("proxywarden_trusted") === 1);
  await limitFiles(daemon, 0);
  clinic.people.fallIll(clinic.nodes[0]!, { ailment: "outage", cure: "reboot" });
  await said(daemon, /"level":"error".*"msg":"the journal can't be written: no node is touched until it can"/);
  await until("the node is held for it", async () => {
    const page = await look();
    return page.sum("proxywarden_decisions_total", { verdict: "hold", reason: "journal" }) === 1;
  });
  const ready = await fetch(`${url}/-/ready`);
  expect({ status: ready.status, text: await ready.text() }).toEqual({
    status: 503,
    text: expect.stringMatching(/the journal can't be written: disk I\/O error/),
  });
  expect((await look()).sum("proxywarden_journal_writable")).toBe(0);
  expect(clinic.gate.posts).toEqual([]);

  await limitFiles(daemon, "unlimited");
  await said(daemon, /"msg":"the journal can be written again"/);
  await said(daemon, /"state":"healed"/);
  expect(clinic.gate.posts).toHaveLength(1);
  expect((await fetch(`${url}/-/ready`)).status).toBe(200);
});
