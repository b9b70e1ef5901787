import { describe, expect, test } from "vitest";
import { type Fault, type ListOptions, NODE_ORDERS, SESSION_ORDERS } from "../../../src/model/scenario.ts";
import { defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { actualNodes } from "../../../src/simulator/inspection.ts";
import { createTestClient, json, START, scenarioWith, type TestClient } from "../api-caller.ts";

const SECOND_MS = 1_000;
const ALWAYS_MS = 365 * 86_400_000;
const { nodeList, sessionList } = defaultServiceOptions;

type Item = Record<string, string | number>;

const page = (client: TestClient, path: string): { data: Item[]; pagination: Record<string, number> } =>
  json(client.get(path));

/** Every page of a list at one instant, at a few records a page. */
function readAllPages(client: TestClient, path: string, limit = 17): Item[] {
  const records: Item[] = [];
  for (let number = 1; ; number += 1) {
    const { data } = page(client, `${path}?limit=${limit}&page=${number}`);
    records.push(...data);
    if (data.length < limit) return records;
  }
}

const always = (fault: Fault["fault"], match = "GET"): Fault => ({ afterMs: 0, forMs: ALWAYS_MS, match, fault });

/** Whether the values ascend. */
const isAscending = (values: readonly (string | number)[]): boolean =>
  values.every((value, index) => index === 0 || values[index - 1]! <= value);

/** A fleet in which nodes fall ill and sessions come and go. */
const busyNetwork = { nodes: 120, sessions: 300, rates: { ...scenarioWith().rates, faultEveryMs: 3_600_000 } };

describe("the node list", () => {
  test.each(NODE_ORDERS.flatMap((field) => [field, `-${field}`] as const))("is sorted by %s", (order) => {
    const client = createTestClient(scenarioWith(busyNetwork, { nodeList: { ...nodeList, order } }));
    const field = order.replace("-", "");
    for (let step = 0; step < 5; step += 1) {
      client.now += 40 * SECOND_MS;
      const ids = readAllPages(client, "/v1/nodes").map(({ id }) => id);
      const truth = new Map([...actualNodes(client.service)].map((node) => [node.id, node]));
      const values = ids.map((id) => Reflect.get(truth.get(String(id))!, field) as string | number);
      expect(isAscending(order.startsWith("-") ? values.toReversed() : values)).toBe(true);
      expect(new Set(ids).size).toBe(120);
    }
  });

  test("is in the order of joining by default, and by last_seen shifts within a walk", () => {
    const idsOf = (order: typeof nodeList.order, ms: number) => {
      const client = createTestClient(scenarioWith(busyNetwork, { nodeList: { ...nodeList, order } }));
      client.now += ms;
      return readAllPages(client, "/v1/nodes").map(({ id }) => id);
    };
    const joined = [...actualNodes(createTestClient(scenarioWith(busyNetwork)).service)].map(({ id }) => id);
    expect(idsOf("joined", 0)).toEqual(joined);
    expect(idsOf("-last_seen", SECOND_MS)).not.toEqual(idsOf("-last_seen", 3 * SECOND_MS));
  });
});

test.each(SESSION_ORDERS.flatMap((field) => [field, `-${field}`] as const))("sessions are sorted by %s", (order) => {
  const client = createTestClient(scenarioWith(busyNetwork, { sessionList: { ...sessionList, order } }));
  client.now += 60 * SECOND_MS;
  const sessions = readAllPages(client, "/v1/sessions");
  const values = sessions.map((session) => session[order.replace("-", "")]!);
  expect(isAscending(order.startsWith("-") ? values.toReversed() : values)).toBe(true);
  const plain = createTestClient(scenarioWith(busyNetwork));
  plain.now = client.now;
  const idsOf = (listed: Item[]) => listed.map(({ id }) => String(id)).toSorted();
  expect(idsOf(sessions)).toEqual(idsOf(readAllPages(plain, "/v1/sessions")));
});

describe("the total", () => {
  const totals = (options: Partial<ListOptions<never>>, path: string) => {
    const change = { nodeList: { ...nodeList, ...options }, sessionList: { ...sessionList, ...options } };
    const client = createTestClient(scenarioWith({}, change));
    return [1, 2, 3].map((number) => page(client, `${path}?limit=15&page=${number}`).pagination.total);
  };

  test("is off by a constant, and never below 0", () => {
    expect(totals({ totalOffBy: 1 }, "/v1/nodes")).toEqual([41, 41, 41]);
    expect(totals({ totalOffBy: -1 }, "/v1/nodes")).toEqual([39, 39, 39]);
    expect(totals({ totalOffBy: -50 }, "/v1/nodes")).toEqual([0, 0, 0]);
    expect(totals({ totalOffBy: 5 }, "/v1/sessions")).toEqual([405, 405, 405]);
  });

  test("is a fixed number", () => {
    expect(totals({ totalFixed: 1e9 }, "/v1/nodes")).toEqual([1e9, 1e9, 1e9]);
    expect(totals({ totalFixed: 0 }, "/v1/sessions")).toEqual([0, 0, 0]);
  });

  test("counts the records of the page alone", () => {
    expect(totals({ totalCounts: "page" }, "/v1/nodes")).toEqual([15, 15, 10]);
  });

  test("is that of a while ago", () => {
    const churn = { ...scenarioWith().churn, joinEveryMs: 20 * SECOND_MS };
    const options = {
      nodeList: { ...nodeList, totalLagMs: 60 * SECOND_MS },
      sessionList: { ...sessionList, totalLagMs: 30 * SECOND_MS },
    };
    const lagging = createTestClient(scenarioWith({ churn }, options));
    const exact = createTestClient(scenarioWith({ churn }));
    const lengths: { nodes: number; sessions: number }[] = [];
    for (let second = 0; second <= 600; second += 1) {
      lagging.now = exact.now = START + second * SECOND_MS;
      const total = (client: TestClient, path: string) => page(client, `${path}?limit=1`).pagination.total!;
      lengths.push({ nodes: total(exact, "/v1/nodes"), sessions: total(exact, "/v1/sessions") });
      expect(total(lagging, "/v1/nodes")).toBe(lengths[Math.max(0, second - 60)]!.nodes);
      expect(total(lagging, "/v1/sessions?status=active")).toBeGreaterThan(0);
      const before = lengths[Math.max(0, second - 30)]!.sessions;
      expect(Math.abs(total(lagging, "/v1/sessions") - before)).toBeLessThanOrEqual(2);
    }
    expect(lengths.at(-1)!.nodes).toBeGreaterThan(55);
  });
});

test("a page that begins past the last record that can be listed gets 400", () => {
  const client = createTestClient(scenarioWith({}, { nodeList: { ...nodeList, recordsMax: 20 } }));
  expect([1, 2, 3].map((number) => client.get(`/v1/nodes?limit=10&page=${number}`).status)).toEqual([200, 200, 400]);
  expect(page(client, "/v1/nodes?limit=10").pagination.total).toBe(40);
  expect(client.get("/v1/sessions?limit=10&page=3").status).toBe(200);
});

describe("a list with duplicates", () => {
  test.each(["/v1/nodes", "/v1/sessions"])("%s lists its first records again at its end", (path) => {
    const faults = [always({ kind: "duplicates", records: 2 }, `GET ${path}`)];
    const once = readAllPages(createTestClient(scenarioWith()), path).map(({ id }) => id);
    for (const limit of [7, 16, 41, 1_000]) {
      const ids = readAllPages(createTestClient(scenarioWith({ faults })), path, limit).map(({ id }) => id);
      expect(ids).toEqual([...once, ...once.slice(0, 2)]);
    }
    expect(page(createTestClient(scenarioWith({ faults })), path).pagination.total).toBe(once.length + 2);
  });

  test("has no more of them than records", () => {
    const client = createTestClient(scenarioWith({ nodes: 3, faults: [always({ kind: "duplicates", records: 10 })] }));
    expect(readAllPages(client, "/v1/nodes")).toHaveLength(6);
  });
});

test.each([
  ["requested", 3],
  ["first", 1],
] as const)("a service that ignores the page answers with the first one, and states the %s one", (states, stated) => {
  const faults = [always({ kind: "page_ignored", states }, "GET /v1/nodes")];
  const client = createTestClient(scenarioWith({ faults }));
  const first = page(client, "/v1/nodes?limit=10");
  const third = page(client, "/v1/nodes?limit=10&page=3");
  expect(third.data).toEqual(first.data);
  expect(third.pagination).toEqual({ page: stated, limit: 10, total: 40 });
  expect(page(client, "/v1/sessions?limit=10&page=3").data).not.toEqual(page(client, "/v1/sessions?limit=10").data);
});

describe("bad details", () => {
  const client = (answer: "not_found" | "unreadable" | "server_error") =>
    createTestClient(scenarioWith({ nodes: 150, faults: [always({ kind: "bad_details", share: 0.1, answer })] }));
  const badOf = (one: TestClient, status: number) =>
    readAllPages(one, "/v1/nodes", 151).flatMap(({ id }) => {
      const reply = one.get(`/v1/nodes/${id}`);
      return reply.status === status && json(reply).id === undefined ? [id] : [];
    });

  test("are those of the same share of the nodes, whatever the answer", () => {
    const bad = badOf(client("not_found"), 404);
    expect(bad.length / 150).toBeGreaterThan(0.05);
    expect(bad.length / 150).toBeLessThan(0.15);
    const again = client("not_found");
    again.now += 3_600_000;
    expect(badOf(again, 404)).toEqual(bad);
    expect(badOf(client("unreadable"), 200)).toEqual(bad);
    expect(badOf(client("server_error"), 500)).toEqual(bad);
  });

  test("of several faults are answered by the first whose share holds the node", () => {
    const faults = ([0.2, 0.5] as const).map((share, index) =>
      always({ kind: "bad_details", share, answer: index === 0 ? "not_found" : "server_error" }),
    );
    const one = createTestClient(scenarioWith({ nodes: 150, faults }));
    const statuses = readAllPages(one, "/v1/nodes", 151).map(({ id }) => one.get(`/v1/nodes/${id}`).status);
    const shareOf = (status: number) => statuses.filter((each) => each === status).length / 150;
    expect(Math.abs(shareOf(404) - 0.2)).toBeLessThan(0.1);
    expect(Math.abs(shareOf(500) - 0.3)).toBeLessThan(0.1);
    expect(Math.abs(shareOf(200) - 0.5)).toBeLessThan(0.1);
  });

  test("leave the list and the actions of those nodes alone", () => {
    const one = client("not_found");
    const [id] = badOf(one, 404);
    expect(readAllPages(one, "/v1/nodes", 151).map((node) => node.id)).toContain(id);
    expect(one.post(`/v1/nodes/${id}/reboot`).status).toBe(200);
  });
});
