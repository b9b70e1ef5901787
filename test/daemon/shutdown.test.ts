import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { fail, ok } from "../../src/base/result.ts";
import { startDaemon } from "../../src/daemon/daemon.ts";
import { SHUTDOWN_BUDGET } from "../../src/daemon/shutdown.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { parsedConfig, startDaemonGroup } from "../harness/daemon/daemon-group.ts";
import { createSharedDatabase } from "../harness/daemon/shared-database.ts";
import { createRecordingLog, START_MS } from "../harness/daemon/virtual-daemon.ts";
import { orThrow } from "../harness/or-throw.ts";
import { freePort } from "../harness/servers/free-port.ts";

/** After SIGTERM the process exits within this time. */
const STOP_MS_MAX = 10 * SECOND_MS;
/** The web server closes in real time, so virtual time passes in small steps until the daemon has stopped. */
const STEP_MS = 20;

/** Starts a daemon with a web server on a shared database. */
async function startSharedDaemon() {
  const clock = createVirtualClock(START_MS);
  const database = createSharedDatabase(clock).connect("one", clock);
  const sections = {
    service: { base_url: "https://127.0.0.1:1", api_key: "k".repeat(40), usage_scale: "ratio", timeout: "30s" },
    web: { listen: "127.0.0.1:0" },
  };
  const log = createRecordingLog();
  const reads = { begun: 0, done: 0 };
  let reading = Promise.resolve();
  let web = sections.web;
  const configWith = (minutes: number) =>
    parsedConfig({ ...sections, web, collect: { nodes: { every: `${minutes}m` } } });
  const started = await startDaemon(orThrow(configWith(1)), {
    clock,
    random: () => 0.5,
    log: { ...log, setLevel() {} },
    version: "0.0.0",
    readConfig: async () => {
      reads.begun++;
      await reading;
      return configWith(++reads.done + 1);
    },
    openStore: () => ok(database.state),
  });
  const daemon = orThrow(started);
  /** Stops the daemon. Returns how long that took. */
  async function stop(): Promise<number> {
    const startedAt = clock.monotonic();
    let isStopped = false;
    const stopping = daemon.stop().then(() => {
      isStopped = true;
    });
    while (!isStopped && clock.monotonic() - startedAt < 2 * STOP_MS_MAX) await clock.advance(STEP_MS);
    if (isStopped) await stopping;
    return clock.monotonic() - startedAt;
  }
  /** Makes reads of the configuration wait. Each returns another configuration. */
  const waitBeforeReading = (until: Promise<void>) => {
    reading = until;
  };
  /** Makes the next reads of the configuration return another address of the web server. */
  const moveWeb = (listen: string) => {
    web = { listen };
  };
  return { clock, database, daemon, log, reads, stop, waitBeforeReading, moveWeb };
}

test("a leader whose database hangs stops within 10 s", async () => {
  const { clock, database, daemon, stop } = await startSharedDaemon();
  await clock.advance(5 * SECOND_MS);
  const status = await (await fetch(`${daemon.url()}/api/v1/status`)).json();
  expect(status).toMatchObject({ leader: { is_this: true } });
  database.hanging = new Promise(() => {});
  await clock.advance(5 * SECOND_MS);
  expect(await stop()).toBeLessThan(STOP_MS_MAX);
});

test("a daemon whose database hangs while it is elected stops within 10 s", async () => {
  const { clock, database, stop } = await startSharedDaemon();
  database.hanging = new Promise(() => {});
  await clock.advance(5 * SECOND_MS);
  expect(await stop()).toBeLessThan(STOP_MS_MAX);
});

test("a leader whose database answers stops immediately and releases the lease", async () => {
  const { clock, database, stop } = await startSharedDaemon();
  await clock.advance(5 * SECOND_MS);
  expect(await stop()).toBeLessThan(SECOND_MS);
  expect((await database.state.lease.current())!.leftMs).toBe(0);
});

test("a leader whose database answers slowly releases the lease when it stops", async () => {
  const { clock, database, stop } = await startSharedDaemon();
  await clock.advance(5 * SECOND_MS);
  Object.defineProperty(database, "hanging", { get: () => clock.sleep(SECOND_MS) });
  expect(await stop()).toBeLessThan(STOP_MS_MAX);
  Object.defineProperty(database, "hanging", { value: null });
  expect((await database.state.lease.current())!.leftMs).toBe(0);
});

test("a daemon that stops while it is elected releases the lease", async () => {
  const { clock, database, log, stop } = await startSharedDaemon();
  const hanging = Promise.withResolvers<void>();
  database.hanging = hanging.promise;
  await clock.advance(SECOND_MS);
  expect(database.state.lease.epoch()).not.toBeNull();
  const stopped = stop();
  hanging.resolve();
  expect(await stopped).toBeLessThan(SECOND_MS);
  expect((await database.state.lease.current())!.leftMs).toBe(0);
  expect(log.lines.filter(({ level }) => level === "error")).toEqual([]);
});

test("a leader whose database hangs has stopped its collectors by the time of the handover", async () => {
  const group = await startDaemonGroup({ daemons: 1 });
  const { clock, service, daemons } = group;
  service.setFaults([{ fault: { kind: "hang" }, afterMs: 0, forMs: Number.POSITIVE_INFINITY }]);
  await group.advanceUntil(() => service.inFlight > 0);
  const hanging = Promise.withResolvers<void>();
  daemons[0]!.database.hanging = hanging.promise;
  await clock.advance(SECOND_MS);
  expect([group.leaders(), service.inFlight]).toEqual([["one"], 1]);
  const handover = clock.sleep(SHUTDOWN_BUDGET.activeMs).then(() => {
    hanging.resolve();
    return service.inFlight;
  });
  await daemons[0]!.stop();
  expect(await handover).toBe(0);
});

test("reloads run one at a time; requests during one share the next, which reads the files again", async () => {
  const { clock, daemon, reads, stop, waitBeforeReading } = await startSharedDaemon();
  await clock.advance(5 * SECOND_MS);
  const reading = Promise.withResolvers<void>();
  waitBeforeReading(reading.promise);
  const first = daemon.reload();
  await clock.advance(STEP_MS);
  const others = Array.from({ length: 5 }, () => daemon.reload());
  await clock.advance(STEP_MS);
  expect(reads).toEqual({ begun: 1, done: 0 });
  reading.resolve();
  expect(await Promise.all([first, ...others])).toEqual(Array(6).fill(ok(undefined)));
  expect(reads).toEqual({ begun: 2, done: 2 });
  await stop();
});

test("a configuration that was read after SIGTERM is neither activated nor called rejected", async () => {
  const { clock, database, daemon, log, stop, waitBeforeReading } = await startSharedDaemon();
  await clock.advance(5 * SECOND_MS);
  const reading = Promise.withResolvers<void>();
  waitBeforeReading(reading.promise);
  const reloaded = daemon.reload();
  await clock.advance(STEP_MS);
  const stopped = stop();
  reading.resolve();
  expect(await reloaded).toEqual(fail(["the daemon is stopping"]));
  expect(await stopped).toBeLessThan(SECOND_MS);
  expect(log.lines.map(({ level, message }) => `${level}: ${message}`)).toContain("info: reload stopped");
  expect(log.lines.filter(({ level }) => level === "error")).toEqual([]);
  expect(await database.state.journal.operatorCommands({ limit: 1 })).toEqual([]);
});

test("a shutdown during a reload closes the web server to which the reload moves", async () => {
  const { clock, database, daemon, stop, moveWeb } = await startSharedDaemon();
  const hanging = Promise.withResolvers<void>();
  database.hanging = hanging.promise;
  // The reload waits for the election, which waits for the database.
  await clock.advance(SECOND_MS);
  const oldUrl = daemon.url();
  const newUrl = `http://127.0.0.1:${await freePort()}`;
  moveWeb(new URL(newUrl).host);
  const reloaded = daemon.reload();
  const isOpen = (url: string) =>
    fetch(`${url}/-/healthy`).then(
      () => true,
      () => false,
    );
  while (!(await isOpen(newUrl))) await clock.advance(STEP_MS);
  const stopped = stop();
  hanging.resolve();
  expect(await reloaded).toEqual(ok(undefined));
  await stopped;
  expect([await isOpen(oldUrl), await isOpen(newUrl)]).toEqual([false, false]);
});

test("after waiting for a reload, a shutdown waits less for the response to a POST in flight", async () => {
  const group = await startDaemonGroup({ daemons: 1 });
  const { clock, service, daemons } = group;
  const { roleSwitch } = daemons[0]!;
  await clock.advance(4 * MINUTE_MS);
  service.setFaults([{ fault: { kind: "hang" }, match: "POST", afterMs: 0, forMs: Number.POSITIVE_INFINITY }]);
  group.failNode();
  await group.advanceUntil(() => group.posts.length > 0);
  const reloadMs = 3 * SECOND_MS;
  // The shutdown began before the daemon waited for its reload.
  const stopping = roleSwitch.stop(clock.monotonic() - reloadMs);
  await clock.advance(SHUTDOWN_BUDGET.postMs - reloadMs - 1);
  expect(group.actions()).toMatchObject([{ state: "posting", inDoubt: false }]);
  await clock.advance(1);
  expect(group.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  await stopping;
});

test("a daemon that stops while the state is opened for its term does not lead", async () => {
  const { clock, daemons } = await startDaemonGroup({ daemons: 1 });
  const { database, roleSwitch } = daemons[0]!;
  const hanging = Promise.withResolvers<void>();
  const { openStore } = database.state;
  Object.assign(database.state, { openStore: () => hanging.promise.then(openStore) });
  await clock.advance(SECOND_MS);
  expect(database.state.lease.epoch()).toBe(1);
  const stopping = roleSwitch.stop(clock.monotonic());
  hanging.resolve();
  await stopping;
  expect(roleSwitch.active.isLeading).toBe(false);
});

test("a daemon that is elected after it has stopped opens no term, and releases the lease", async () => {
  const { clock, database, daemons } = await startDaemonGroup({ daemons: 1 });
  const { database: connection, roleSwitch } = daemons[0]!;
  const { openStore } = connection.state;
  let terms = 0;
  const countingOpenStore = () => {
    terms += 1;
    return openStore();
  };
  Object.assign(connection.state, { openStore: countingOpenStore });
  await roleSwitch.stop(clock.monotonic());
  await clock.advance(SECOND_MS);
  expect(connection.state.lease.epoch()).toBe(1);
  expect([terms, roleSwitch.active.isLeading]).toEqual([0, false]);
  await roleSwitch.handOver();
  expect(database.holder()).toBeNull();
});
