import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Fault } from "../../../src/config/schema/scenario.ts";
import type { Transport } from "../../../src/model/ports.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { createService } from "../../../src/simulator/http/service.ts";
import { noFailureRates } from "../../harness/daemon/quiet-network.ts";
import {
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";

const NODES = isLongRun ? 300 : 60;
/** Failing nodes of a fleet of twice as many nodes. */
const BLOCK = isLongRun ? 40 : 8;
const NO_NODES: ReadonlySet<string> = new Set();

/** Responses to the detail of a failing node. */
const answers = {
  not_found: { status: 404, body: '{"error":"not_found","message":"no such node"}' },
  unreadable: { status: 200, body: '{"id":7}' },
  server_error: { status: 500, body: '{"error":"internal","message":"failed"}' },
} as const;
const MODES = isLongRun ? (["not_found", "unreadable", "server_error"] as const) : (["unreadable"] as const);

/** A daemon that reads lists and details of a fleet in which the details of some nodes fail. */
async function startFleet(
  mode: keyof typeof answers,
  { nodes = NODES, latencyMs = 50, faults = [] as readonly Fault[], roundMs = 15 * MINUTE_MS } = {},
) {
  const clock = createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, nodes, sessions: 10, faults, rates: noFailureRates }, START_MS);
  const simulated = createSimulatedTransport(service, clock, { latencyMs });
  const calls: { id: string; isBad: boolean }[] = [];
  let bad = NO_NODES;
  const transport: Transport = {
    ...simulated,
    async request(request, signal) {
      const id = /^\/v1\/nodes\/([^?/]+)$/.exec(request.path)?.[1];
      const answer = await simulated.request(request, signal);
      if (id === undefined || !answer.ok) return answer;
      calls.push({ id, isBad: bad.has(id) });
      if (!bad.has(id)) return answer;
      const { status, body } = answers[mode];
      return { ok: true, value: { ...answer.value, status, body: Buffer.from(body) } };
    },
  };
  const details = { kind: "every", intervalMs: roundMs } as const;
  const schedules = { ...everyMinuteSettings.schedules, details, sessions: null, stats: null, hourly: null };
  const daemon = await startVirtualDaemon({ clock, service, transport, settings: { schedules } });
  return {
    daemon,
    /** Returns the ids in the order in which they are read. */
    order: () => [...new Set(calls.map(({ id }) => id))],
    spoil(ids: readonly string[]) {
      bad = new Set(ids);
    },
    /** Lets time pass, and returns the number of calls for the details of good and of failing nodes. */
    async pass(ms: number) {
      const before = calls.length;
      await clock.advance(ms);
      const badCalls = calls.slice(before).filter(({ isBad }) => isBad).length;
      return { good: calls.length - before - badCalls, bad: badCalls };
    },
    failing: async () =>
      Number(/proxywarden_details_failing_nodes (\d+)/.exec(await daemon.metrics.render("text"))?.[1]),
    logged: () =>
      daemon.log.lines.map(({ level, message, fields }) => `${level} ${message} ${fields.nodes ?? ""}`.trim()),
    state: () => daemon.collectorManager.collectorHealth().details,
  };
}

test.each(MODES)("a block of nodes with failing details (%s) does not slow down the reads of others", async (mode) => {
  const fleet = await startFleet(mode, { nodes: 2 * NODES });
  await fleet.pass(20 * MINUTE_MS);
  const readsBefore = (await fleet.pass(20 * MINUTE_MS)).good;
  fleet.spoil(fleet.order().slice(0, BLOCK));
  const good: number[] = [];
  for (let third = 0; third < 5; third++) good.push((await fleet.pass(20 * MINUTE_MS)).good / readsBefore);
  // Each failing node is read twice before it skips rounds, and a read that gets 5xx takes three calls.
  expect(Math.min(...good)).toBeGreaterThan(mode === "server_error" ? 0.6 : 0.8);
  expect(Math.min(...good.slice(3))).toBeGreaterThan(0.85);
  expect(await fleet.failing()).toBe(BLOCK);
  expect(fleet.state()).toMatchObject({ complete: false, failure: null });
  const line = "warn details of some nodes can't be read";
  expect(fleet.logged()).toEqual([`${line} 1`, `${line} ${BLOCK}`]);
  await stopVirtualDaemon(fleet.daemon);
});

test("a node is read less often the longer it fails, and as usual after one success", async () => {
  const fleet = await startFleet("unreadable", { roundMs: 5 * MINUTE_MS });
  await fleet.pass(7 * MINUTE_MS);
  const block = fleet.order().slice(20, 28);
  fleet.spoil(block);
  const round = fleet.daemon.collectorManager.plan().details!.intervalMs;
  await fleet.pass(10 * round);
  // Every eighth round, and rounds are shorter if other nodes skip them.
  expect((await fleet.pass(8 * round)).bad).toBeLessThanOrEqual(block.length * 1.5);
  fleet.spoil([]);
  await fleet.pass(8 * round);
  expect(await fleet.failing()).toBe(0);
  expect(fleet.state()).toMatchObject({ complete: true, failure: null });
  expect(fleet.logged().at(-1)).toBe("info details of all nodes can be read again");
  fleet.spoil(block);
  expect((await fleet.pass(1.1 * round)).bad).toBeGreaterThanOrEqual(block.length);
  await stopVirtualDaemon(fleet.daemon);
});

test("404 for every detail is a failure of the nodes, not of the service", async () => {
  const fleet = await startFleet("not_found");
  await fleet.pass(20 * MINUTE_MS);
  fleet.spoil(fleet.order());
  await fleet.pass(HOUR_MS);
  expect(await fleet.failing()).toBe(NODES);
  expect(fleet.state().failure).toBeNull();
  fleet.spoil([]);
  // A failing node skips at most seven rounds.
  await fleet.pass(8 * fleet.daemon.collectorManager.plan().details!.intervalMs);
  expect(await fleet.failing()).toBe(0);
  await stopVirtualDaemon(fleet.daemon);
});

test.each(MODES)("good details are read on time if those of nine in ten nodes fail (%s)", async (mode) => {
  const fleet = await startFleet(mode);
  await fleet.pass(2 * MINUTE_MS);
  const { ids } = fleet.daemon.snapshots.last!.fleet;
  fleet.spoil(ids.filter((_, slot) => slot % 10 !== 0));
  await fleet.pass(HOUR_MS);
  const since = fleet.daemon.clock.monotonic();
  await fleet.pass(HOUR_MS);
  const { detailedAt } = fleet.daemon.snapshots.last!.fleet;
  expect([...detailedAt].filter((at) => at >= since).length).toBe(NODES / 10);
  await stopVirtualDaemon(fleet.daemon);
});

test("a fleet is read if most details fail from the start", async () => {
  const fleet = await startFleet("not_found", { latencyMs: 1_000 });
  await fleet.pass(2 * MINUTE_MS);
  fleet.spoil(fleet.daemon.snapshots.last!.fleet.ids.slice(0, 0.7 * NODES));
  await fleet.pass(HOUR_MS);
  expect((await fleet.pass(HOUR_MS)).good).toBeGreaterThan(2 * 0.3 * NODES);
  await stopVirtualDaemon(fleet.daemon);
});

test.each(MODES)("failing nodes spread over the fleet (%s) skip rounds individually", async (mode) => {
  const share = 0.4;
  const fault: Fault = {
    afterMs: 30 * MINUTE_MS,
    forMs: 24 * HOUR_MS,
    fault: { kind: "bad_details", nodes: share, answer: mode },
  };
  const fleet = await startFleet(mode, { faults: [fault] });
  await fleet.pass(2 * HOUR_MS);
  const failing = await fleet.failing();
  expect(failing / NODES).toBeGreaterThan(share - 0.1);
  expect(failing / NODES).toBeLessThan(share + 0.1);
  const isRead = ({ detailedAt }: Fleet, since: number) => [...detailedAt].filter((at) => at >= since).length;
  const since = fleet.daemon.clock.monotonic();
  // One round, and the time that the reads of failing nodes take.
  await fleet.pass(1.5 * fleet.daemon.collectorManager.plan().details!.intervalMs);
  expect(isRead(fleet.daemon.snapshots.last!.fleet, since)).toBe(NODES - failing);
  await stopVirtualDaemon(fleet.daemon);
});

const failingModes = isLongRun ? (["unreadable", "server_error"] as const) : (["server_error"] as const);

test.each(failingModes)("details that fail for all nodes (%s) slow down all reads until one succeeds", async (mode) => {
  const fleet = await startFleet(mode);
  await fleet.pass(30 * MINUTE_MS);
  fleet.spoil(fleet.order());
  await fleet.pass(HOUR_MS);
  const callsPerRead = mode === "server_error" ? 3 : 1;
  expect((await fleet.pass(HOUR_MS)).bad).toBeLessThanOrEqual(13 * callsPerRead);
  expect(fleet.state().failure).not.toBeNull();
  expect(await fleet.failing()).toBe(0);
  fleet.spoil([]);
  await fleet.pass(5 * MINUTE_MS);
  const planned = fleet.daemon.collectorManager.plan().details!.callsPerMinute;
  expect((await fleet.pass(20 * MINUTE_MS)).good).toBeGreaterThanOrEqual(0.97 * 20 * planned);
  expect(fleet.state().failure).toBeNull();
  expect(fleet.logged()).toEqual(["warn collector failed", "info collector works again"]);
  await stopVirtualDaemon(fleet.daemon);
});
