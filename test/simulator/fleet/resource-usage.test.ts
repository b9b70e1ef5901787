import { expect, test } from "vitest";

import type { ResourceLoad } from "../../../src/simulator/fleet/resource-usage.ts";

import { actualNodes } from "../../harness/simulator/actual-state.ts";
import { createInterventions } from "../../harness/simulator/interventions.ts";
import { createTestClient, json, START, scenarioWith, type TestClient } from "../api-caller.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const interventionsOf = (client: TestClient) => createInterventions(client.service, () => client.now);

/** Returns the node's detail at a time after the start. */
function detailAt(client: TestClient, id: string, afterMs: number) {
  client.now = START + afterMs;
  return json(client.get(`/v1/nodes/${id}`));
}

const firstId = (client: TestClient): string => [...actualNodes(client.service)][0]!.id;

const diskLoad: ResourceLoad = {
  resource: "disk",
  since: START + HOUR_MS,
  overMs: HOUR_MS,
  level: 0.98,
  until: START + 3 * HOUR_MS,
};

test("a load raises one usage linearly until its end and changes no other field", () => {
  const client = createTestClient(scenarioWith({ sessions: 0 }));
  const quiet = createTestClient(scenarioWith({ sessions: 0 }));
  const id = firstId(client);
  interventionsOf(client).setLoad(id, diskLoad);
  for (const [minutes, share] of [
    [30, 0],
    [90, 0.5],
    [150, 1],
    [200, 0],
  ] as const) {
    const { disk_usage: loaded, ...rest } = detailAt(client, id, minutes * MINUTE_MS);
    const { disk_usage: healthy, ...quietRest } = detailAt(quiet, id, minutes * MINUTE_MS);
    expect(loaded).toBeCloseTo(healthy + share * (0.98 - healthy), 2);
    expect(rest).toEqual(quietRest);
    expect(rest.status).toBe("online");
  }
});

test("a load may jump to its level, may start in the past, and ends with null", () => {
  const client = createTestClient(scenarioWith({ sessions: 0 }));
  const id = firstId(client);
  interventionsOf(client).setLoad(id, {
    resource: "memory",
    since: START - HOUR_MS,
    overMs: 0,
    level: 0.95,
    until: Infinity,
  });
  expect(detailAt(client, id, 0).memory_usage).toBe(0.95);
  interventionsOf(client).setLoad(id, null);
  expect(detailAt(client, id, 0).memory_usage).toBeLessThan(0.6);
});

test("a restart resets the uptime and loses the sessions without a change of the status", () => {
  const client = createTestClient(scenarioWith());
  const node = [...actualNodes(client.service)].find(
    ({ active_sessions, uptime_hours, status }) => active_sessions > 3 && uptime_hours! > 0 && status === "online",
  )!;
  client.now += 1;
  interventionsOf(client).restart(node.id);
  const after = json(client.get(`/v1/nodes/${node.id}`));
  expect([after.status, after.uptime_hours, after.active_sessions]).toEqual(["online", 0, 0]);
  expect(Date.parse(after.last_seen)).toBeGreaterThanOrEqual(Math.floor(client.now / 1_000) * 1_000);
  expect(detailAt(client, node.id, 2 * HOUR_MS).uptime_hours).toBe(1);
});
