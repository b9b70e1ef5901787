import { describe, expect, test } from "vitest";
import type { ChurnRates, Scenario } from "../../../src/config/schema/scenario.ts";
import { actualNode, actualNodes, actualSessions, membershipChangesOf } from "../../harness/simulator/actual-state.ts";
import { createTestClient, json, noFailureRates, START, scenarioWith, type TestClient } from "../api-caller.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const NEVER = Number.POSITIVE_INFINITY;

const scenarioWithChurn = (rates: Partial<ChurnRates>, change: Partial<Scenario> = {}) =>
  scenarioWith({ ...change, churn: { ...scenarioWith().churn, ...rates } });

const advance = (client: TestClient, ms: number): string[] => {
  client.now += ms;
  return json(client.get("/v1/nodes?limit=1000")).data.map(({ id }: { id: string }) => id);
};

/** Returns the nodes with an open session. */
const nodesWithSessions = (client: TestClient): ReadonlySet<string> =>
  new Set(
    [...actualSessions(client.service)]
      .filter(({ status }) => status === "active" || status === "connecting")
      .map(({ node_id }) => node_id),
  );

test("releases nodes that left permanently", () => {
  const client = createTestClient(scenarioWithChurn({ joinEveryMs: MINUTE_MS, leaveEveryMs: MINUTE_MS }));
  const present = advance(client, 24 * HOUR_MS);
  const { allNodes } = client.service.network.fleet;
  expect(allNodes.length).toBeGreaterThan(1_000);
  expect(allNodes.filter((node) => node !== null).map(({ id }) => id)).toEqual(present);
});

test("nodes join at the rate, with new IDs and without history, and accept sessions", () => {
  const client = createTestClient(scenarioWithChurn({ joinEveryMs: MINUTE_MS }));
  const before = advance(client, 0);
  const after = advance(client, 2 * HOUR_MS);
  const joined = membershipChangesOf(client.service);
  expect(joined.length).toBeGreaterThan(90);
  expect(joined.length).toBeLessThan(150);
  expect(after).toEqual([...before, ...joined.map(({ id }) => id)]);
  expect(new Set(after).size).toBe(after.length);
  for (const { id, at, kind } of joined) {
    const node = json(client.get(`/v1/nodes/${id}`));
    expect([kind, Date.parse(node.created_at)]).toEqual(["joined", at]);
    expect(node.uptime_hours).toBe(Math.floor((Date.parse(node.last_seen) - at) / HOUR_MS));
    expect(node.bandwidth_gb).toBeLessThan(20);
  }
  const serving = nodesWithSessions(client);
  expect(joined.some(({ id }) => serving.has(id))).toBe(true);
});

test("nodes leave at the rate: they are no longer listed, requests to them get 404, and their sessions end", () => {
  const client = createTestClient(scenarioWithChurn({ leaveEveryMs: 3 * MINUTE_MS }));
  const before = advance(client, 0);
  let left = 0;
  for (let minute = 0; minute < 60; minute += 1) {
    const now = advance(client, MINUTE_MS);
    const gone = membershipChangesOf(client.service).filter(({ kind }) => kind === "left");
    left = gone.length;
    expect(now).toEqual(before.filter((id) => !gone.some((move) => move.id === id)));
    const serving = nodesWithSessions(client);
    expect(gone.filter(({ id }) => serving.has(id))).toEqual([]);
  }
  expect(left).toBeGreaterThan(10);
  expect(left).toBeLessThan(35);
  for (const { id } of membershipChangesOf(client.service)) {
    const path = `/v1/nodes/${id}`;
    const requests = [client.get(path), client.post(`${path}/reboot`), client.post(`${path}/disconnect`)];
    requests.push(client.post(`${path}/quarantine`, { reason: "a trial", duration_minutes: 5 }));
    expect(requests.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    expect(actualNode(client.service, id)).toBeNull();
  }
});

test("joins and leaves depend on the seed and not on the requests", () => {
  const rates = { joinEveryMs: 40 * SECOND_MS, leaveEveryMs: 40 * SECOND_MS };
  const frequent = createTestClient(scenarioWithChurn(rates));
  for (let step = 0; step < 120; step += 1) advance(frequent, 30 * SECOND_MS);
  const rare = createTestClient(scenarioWithChurn(rates));
  advance(rare, HOUR_MS);
  const other = createTestClient(scenarioWithChurn(rates, { seed: 2 }));
  advance(other, HOUR_MS);
  expect(membershipChangesOf(rare.service)).toEqual(membershipChangesOf(frequent.service));
  expect(membershipChangesOf(other.service)).not.toEqual(membershipChangesOf(frequent.service));
});

test("a fleet may become empty, and an empty fleet accepts new nodes", () => {
  const client = createTestClient(scenarioWithChurn({ leaveEveryMs: SECOND_MS }, { nodes: 5 }));
  expect(advance(client, HOUR_MS)).toEqual([]);
  const empty = createTestClient(scenarioWithChurn({ joinEveryMs: MINUTE_MS }, { nodes: 0, sessions: 20 }));
  expect(advance(empty, HOUR_MS).length).toBeGreaterThan(30);
});

test("churn does not affect the failures of the nodes that stay", () => {
  const change = { rates: { ...noFailureRates, faultEveryMs: HOUR_MS } };
  const calm = createTestClient(scenarioWithChurn({}, change));
  const busy = createTestClient(scenarioWithChurn({ joinEveryMs: MINUTE_MS, leaveEveryMs: 5 * MINUTE_MS }, change));
  advance(calm, 2 * HOUR_MS);
  const stayed = new Set(advance(busy, 2 * HOUR_MS));
  const statesOfStayed = (client: TestClient) =>
    [...actualNodes(client.service)]
      .filter(({ id, created_at }) => stayed.has(id) && Date.parse(created_at) < START)
      .map(({ id, status, failureMode, updated_at }) => ({ id, status, failureMode, updated_at }));
  expect(statesOfStayed(busy).length).toBeGreaterThan(10);
  expect(statesOfStayed(calm)).toEqual(statesOfStayed(busy));
});

const rebootAll = (client: TestClient): string[] => {
  const ids = advance(client, 0);
  for (const id of ids) expect(client.post(`/v1/nodes/${id}/reboot`).status).toBe(200);
  expect(advance(client, noFailureRates.rebootMs - 1)).toEqual(ids);
  return ids;
};

describe("nodes that vanish after a reboot", () => {
  test("leave permanently at the end of the reboot, by the share vanishAfterReboot", () => {
    const client = createTestClient(scenarioWithChurn({ vanishAfterReboot: 0.3 }, { nodes: 150 }));
    const ids = rebootAll(client);
    const left = advance(client, 1);
    expect(left.length / ids.length).toBeGreaterThan(0.6);
    expect(left.length / ids.length).toBeLessThan(0.8);
    expect(advance(client, 24 * HOUR_MS)).toEqual(left);
    expect(membershipChangesOf(client.service).map(({ kind }) => kind)).toEqual(
      ids.slice(left.length).map(() => "left"),
    );
  });

  test("return rebooted to their positions after vanishForMs", () => {
    const client = createTestClient(scenarioWithChurn({ vanishAfterReboot: 1, vanishForMs: 10 * MINUTE_MS }));
    const ids = rebootAll(client);
    expect(advance(client, 1)).toEqual([]);
    expect(client.get(`/v1/nodes/${ids[0]}`).status).toBe(404);
    expect(advance(client, 10 * MINUTE_MS - 1)).toEqual([]);
    expect(advance(client, 1)).toEqual(ids);
    for (const node of actualNodes(client.service)) {
      expect([node.status, node.failureMode, node.uptime_hours]).toEqual(["online", "none", 0]);
      expect(Date.parse(node.created_at)).toBeLessThan(START);
    }
    expect(membershipChangesOf(client.service).filter(({ kind }) => kind === "returned")).toHaveLength(ids.length);
  });

  test("return as new machines with the same IDs if IDs are reused", () => {
    const client = createTestClient(
      scenarioWithChurn({ vanishAfterReboot: 1, vanishForMs: 10 * MINUTE_MS, reuseIds: true }),
    );
    const identitiesOf = () =>
      new Map([...actualNodes(client.service)].map(({ id, name, region }) => [id, { name, region }]));
    const before = identitiesOf();
    const ids = rebootAll(client);
    advance(client, 1);
    expect(advance(client, 10 * MINUTE_MS)).toEqual(ids);
    const moved = [...identitiesOf()].filter(([id, { region }]) => region !== before.get(id)!.region);
    expect(moved.length).toBeGreaterThan(ids.length / 2);
    const moves = membershipChangesOf(client.service).filter(({ kind }) => kind === "returned");
    const returnedAt = new Map(moves.map(({ id, at }) => [id, at]));
    for (const { id, created_at } of actualNodes(client.service))
      expect(Date.parse(created_at)).toBe(returnedAt.get(id));
  });

  test("stay offline after their return while their region is cut off", () => {
    const regionDark = { afterMs: 5 * MINUTE_MS, forMs: HOUR_MS, fault: { kind: "region_dark", region: "eu-west" } };
    const churn = { vanishAfterReboot: 1, vanishForMs: 10 * MINUTE_MS };
    const client = createTestClient(scenarioWithChurn(churn, { faults: [regionDark as Scenario["faults"][number]] }));
    rebootAll(client);
    advance(client, 10 * MINUTE_MS + 1);
    const inRegion = () => [...actualNodes(client.service)].filter(({ region }) => region === "eu-west");
    expect(new Set(inRegion().map(({ status }) => status))).toEqual(new Set(["offline"]));
    advance(client, HOUR_MS);
    expect(new Set(inRegion().map(({ status }) => status))).toEqual(new Set(["online"]));
  });

  test("do not vanish by crashes before the start of the simulation", () => {
    const rates = { ...noFailureRates, faultEveryMs: 10 * MINUTE_MS };
    const client = createTestClient(scenarioWithChurn({ vanishAfterReboot: 1, vanishForMs: NEVER }, { rates }));
    expect(advance(client, 0)).toHaveLength(40);
    expect(advance(client, HOUR_MS).length).toBeLessThan(40);
  });
});

test("a share of the nodes stays down after a reboot, until an operator repairs them", () => {
  const repairMs = HOUR_MS;
  const client = createTestClient(
    scenarioWithChurn({ failAfterReboot: 0.3 }, { nodes: 150, rates: { ...noFailureRates, repairMs } }),
  );
  const ids = rebootAll(client);
  const offline = () => [...actualNodes(client.service)].filter(({ status }) => status === "offline").length;
  advance(client, MINUTE_MS);
  expect(offline() / ids.length).toBeGreaterThan(0.2);
  expect(offline() / ids.length).toBeLessThan(0.4);
  advance(client, 20 * repairMs);
  expect(offline()).toBe(0);
});
