import { describe, expect, test } from "vitest";
import type { ChurnRates, Scenario } from "../../../src/model/scenario.ts";
import { fleetMoves, nodesOf, nodeTruth, sessionsOf } from "../../../src/simulator/inspection.ts";
import { type Caller, callerOf, json, START, scenarioWith, still } from "../api-caller.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const NEVER = Number.POSITIVE_INFINITY;

const churning = (rates: Partial<ChurnRates>, change: Partial<Scenario> = {}) =>
  scenarioWith({ ...change, churn: { ...scenarioWith().churn, ...rates } });

const pass = (caller: Caller, ms: number): string[] => {
  caller.now += ms;
  return json(caller.get("/v1/nodes?limit=1000")).data.map(({ id }: { id: string }) => id);
};

/** The nodes that carry a living session. */
const carriers = (caller: Caller): ReadonlySet<string> =>
  new Set(
    [...sessionsOf(caller.service)]
      .filter(({ status }) => status === "active" || status === "connecting")
      .map(({ node_id }) => node_id),
  );

test("a node that left for good is not kept, however many there were", () => {
  const caller = callerOf(churning({ joinEveryMs: MINUTE_MS, leaveEveryMs: MINUTE_MS }));
  const present = pass(caller, 24 * HOUR_MS);
  const { all } = caller.service.world.fleet;
  expect(all.length).toBeGreaterThan(1_000);
  expect(all.filter((node) => node !== null).map(({ id }) => id)).toEqual(present);
});

test("nodes join at the rate, with new ids, fresh and without a past, and take sessions", () => {
  const caller = callerOf(churning({ joinEveryMs: MINUTE_MS }));
  const before = pass(caller, 0);
  const after = pass(caller, 2 * HOUR_MS);
  const joined = fleetMoves(caller.service);
  expect(joined.length).toBeGreaterThan(90);
  expect(joined.length).toBeLessThan(150);
  expect(after).toEqual([...before, ...joined.map(({ id }) => id)]);
  expect(new Set(after).size).toBe(after.length);
  for (const { id, at, kind } of joined) {
    const node = json(caller.get(`/v1/nodes/${id}`));
    expect([kind, Date.parse(node.created_at)]).toEqual(["joined", at]);
    expect(node.uptime_hours).toBe(Math.floor((Date.parse(node.last_seen) - at) / HOUR_MS));
    expect(node.bandwidth_gb).toBeLessThan(20);
  }
  const carrying = carriers(caller);
  expect(joined.some(({ id }) => carrying.has(id))).toBe(true);
});

test("nodes leave at the rate: they are in no list, every request about them gets 404, and their sessions end", () => {
  const caller = callerOf(churning({ leaveEveryMs: 3 * MINUTE_MS }));
  const before = pass(caller, 0);
  let left = 0;
  for (let minute = 0; minute < 60; minute += 1) {
    const now = pass(caller, MINUTE_MS);
    const gone = fleetMoves(caller.service).filter(({ kind }) => kind === "left");
    left = gone.length;
    expect(now).toEqual(before.filter((id) => !gone.some((move) => move.id === id)));
    const carrying = carriers(caller);
    expect(gone.filter(({ id }) => carrying.has(id))).toEqual([]);
  }
  expect(left).toBeGreaterThan(10);
  expect(left).toBeLessThan(35);
  for (const { id } of fleetMoves(caller.service)) {
    const path = `/v1/nodes/${id}`;
    const requests = [caller.get(path), caller.post(`${path}/reboot`), caller.post(`${path}/disconnect`)];
    requests.push(caller.post(`${path}/quarantine`, { reason: "a trial", duration_minutes: 5 }));
    expect(requests.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    expect(nodeTruth(caller.service, id)).toBeNull();
  }
});

test("joins and leaves follow from the seed, whatever is asked", () => {
  const rates = { joinEveryMs: 40 * SECOND_MS, leaveEveryMs: 40 * SECOND_MS };
  const asked = callerOf(churning(rates));
  for (let step = 0; step < 120; step += 1) pass(asked, 30 * SECOND_MS);
  const silent = callerOf(churning(rates));
  pass(silent, HOUR_MS);
  const other = callerOf(churning(rates, { seed: 2 }));
  pass(other, HOUR_MS);
  expect(fleetMoves(silent.service)).toEqual(fleetMoves(asked.service));
  expect(fleetMoves(other.service)).not.toEqual(fleetMoves(asked.service));
});

test("a fleet that everyone leaves is empty, and takes new nodes", () => {
  const caller = callerOf(churning({ leaveEveryMs: SECOND_MS }, { nodes: 5 }));
  expect(pass(caller, HOUR_MS)).toEqual([]);
  const empty = callerOf(churning({ joinEveryMs: MINUTE_MS }, { nodes: 0, sessions: 20 }));
  expect(pass(empty, HOUR_MS).length).toBeGreaterThan(30);
});

test("churn changes nothing about the life of the nodes that stay", () => {
  const change = { rates: { ...still, faultEveryMs: HOUR_MS } };
  const calm = callerOf(churning({}, change));
  const busy = callerOf(churning({ joinEveryMs: MINUTE_MS, leaveEveryMs: 5 * MINUTE_MS }, change));
  pass(calm, 2 * HOUR_MS);
  const stayed = new Set(pass(busy, 2 * HOUR_MS));
  const lives = (caller: Caller) =>
    [...nodesOf(caller.service)]
      .filter(({ id, created_at }) => stayed.has(id) && Date.parse(created_at) < START)
      .map(({ id, status, ailment, updated_at }) => ({ id, status, ailment, updated_at }));
  expect(lives(busy).length).toBeGreaterThan(10);
  expect(lives(calm)).toEqual(lives(busy));
});

describe("of nodes that vanish after a reboot", () => {
  const rebootAll = (caller: Caller): string[] => {
    const ids = pass(caller, 0);
    for (const id of ids) expect(caller.post(`/v1/nodes/${id}/reboot`).status).toBe(200);
    expect(pass(caller, still.rebootMs - 1)).toEqual(ids);
    return ids;
  };

  test("the share is gone for good when the reboot is over", () => {
    const caller = callerOf(churning({ vanishAfterReboot: 0.3 }, { nodes: 150 }));
    const ids = rebootAll(caller);
    const left = pass(caller, 1);
    expect(left.length / ids.length).toBeGreaterThan(0.6);
    expect(left.length / ids.length).toBeLessThan(0.8);
    expect(pass(caller, 24 * HOUR_MS)).toEqual(left);
    expect(fleetMoves(caller.service).map(({ kind }) => kind)).toEqual(ids.slice(left.length).map(() => "left"));
  });

  test("all return to their places, rebooted, when their time is over", () => {
    const caller = callerOf(churning({ vanishAfterReboot: 1, vanishForMs: 10 * MINUTE_MS }));
    const ids = rebootAll(caller);
    expect(pass(caller, 1)).toEqual([]);
    expect(caller.get(`/v1/nodes/${ids[0]}`).status).toBe(404);
    expect(pass(caller, 10 * MINUTE_MS - 1)).toEqual([]);
    expect(pass(caller, 1)).toEqual(ids);
    for (const node of nodesOf(caller.service)) {
      expect([node.status, node.ailment, node.uptime_hours]).toEqual(["online", "none", 0]);
      expect(Date.parse(node.created_at)).toBeLessThan(START);
    }
    expect(fleetMoves(caller.service).filter(({ kind }) => kind === "returned")).toHaveLength(ids.length);
  });

  test("return as other machines under the same ids where ids are reused", () => {
    const caller = callerOf(churning({ vanishAfterReboot: 1, vanishForMs: 10 * MINUTE_MS, reuseIds: true }));
    const ids = rebootAll(caller);
    pass(caller, 1);
    expect(pass(caller, 10 * MINUTE_MS)).toEqual(ids);
    const moves = fleetMoves(caller.service).filter(({ kind }) => kind === "returned");
    const returnedAt = new Map(moves.map(({ id, at }) => [id, at]));
    for (const { id, created_at } of nodesOf(caller.service)) expect(Date.parse(created_at)).toBe(returnedAt.get(id));
  });

  test("one that returns to a dark region stays offline until the region is back", () => {
    const region_dark = { afterMs: 5 * MINUTE_MS, forMs: HOUR_MS, fault: { kind: "region_dark", region: "eu-west" } };
    const churn = { vanishAfterReboot: 1, vanishForMs: 10 * MINUTE_MS };
    const caller = callerOf(churning(churn, { faults: [region_dark as Scenario["faults"][number]] }));
    rebootAll(caller);
    pass(caller, 10 * MINUTE_MS + 1);
    const dark = () => [...nodesOf(caller.service)].filter(({ region }) => region === "eu-west");
    expect(new Set(dark().map(({ status }) => status))).toEqual(new Set(["offline"]));
    pass(caller, HOUR_MS);
    expect(new Set(dark().map(({ status }) => status))).toEqual(new Set(["online"]));
  });

  test("crashes before the start take no node out of the fleet", () => {
    const rates = { ...still, faultEveryMs: 10 * MINUTE_MS };
    const caller = callerOf(churning({ vanishAfterReboot: 1, vanishForMs: NEVER }, { rates }));
    expect(pass(caller, 0)).toHaveLength(40);
    expect(pass(caller, HOUR_MS).length).toBeLessThan(40);
  });
});
