import { describe, expect, test } from "vitest";
import {
  type Fault,
  type ListOptions,
  NODE_ORDERS,
  SESSION_ORDERS,
  type ServiceOptions,
} from "../../../src/config/schema/scenario.ts";
import { defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { actualNodes } from "../../harness/simulator/actual-state.ts";
import { createTestClient, json, START, scenarioWith, type TestClient } from "../api-caller.ts";

const SECOND_MS = 1_000;
const ALWAYS_MS = 365 * 86_400_000;
const { nodeList, sessionList } = defaultServiceOptions;

type Item = Record<string, string | number>;

const page = (client: TestClient, path: string): { data: Item[]; pagination: Record<string, number> } =>
  json(client.get(path));

/** Reads all pages of a list at one time. */
function readAllPages(client: TestClient, path: string, limit = 17): Item[] {
  const records: Item[] = [];
  for (let number = 1; ; number += 1) {
    const { data } = page(client, `${path}?limit=${limit}&page=${number}`);
    records.push(...data);
    if (data.length < limit) return records;
  }
}

const always = (fault: Fault["fault"], match = "GET"): Fault => ({ afterMs: 0, forMs: ALWAYS_MS, match, fault });

/** Returns whether the values ascend. */
const isAscending = (values: readonly (string | number)[]): boolean =>
  values.every((value, index) => index === 0 || values[index - 1]! <= value);

/** A network with failing nodes and changing sessions. */
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

  test("is in the order of joining by default, and changes between requests when sorted by last_seen", () => {
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

  test("differs by totalOffBy, but is never negative", () => {
    expect(totals({ totalOffBy: 1 }, "/v1/nodes")).toEqual([41, 41, 41]);
    expect(totals({ totalOffBy: -1 }, "/v1/nodes")).toEqual([39, 39, 39]);
    expect(totals({ totalOffBy: -50 }, "/v1/nodes")).toEqual([0, 0, 0]);
    expect(totals({ totalOffBy: 5 }, "/v1/sessions")).toEqual([405, 405, 405]);
  });

  test("is the constant totalFixed", () => {
    expect(totals({ totalFixed: 1e9 }, "/v1/nodes")).toEqual([1e9, 1e9, 1e9]);
    expect(totals({ totalFixed: 0 }, "/v1/sessions")).toEqual([0, 0, 0]);
  });

  test("counts only the records of the page", () => {
    expect(totals({ totalCounts: "page" }, "/v1/nodes")).toEqual([15, 15, 10]);
  });

  test("is 0 on a page without records, if it counts only those of other pages", () => {
    const client = createTestClient(
      scenarioWith({ nodes: 40 }, { nodeList: { ...nodeList, totalCounts: "list_unless_empty" } }),
    );
    const totalOf = (page: number) => json(client.get(`/v1/nodes?page=${page}&limit=20`)).pagination.total;
    expect([1, 2, 3].map(totalOf)).toEqual([40, 40, 0]);
  });

  test("lags by totalLagMs", () => {
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

test("answers 400 for a page beyond recordsMax", () => {
  const client = createTestClient(scenarioWith({}, { nodeList: { ...nodeList, recordsMax: 20 } }));
  expect([1, 2, 3].map((number) => client.get(`/v1/nodes?limit=10&page=${number}`).status)).toEqual([200, 200, 400]);
  expect(page(client, "/v1/nodes?limit=10").pagination.total).toBe(40);
  expect(client.get("/v1/sessions?limit=10&page=3").status).toBe(200);
});

test("answers a page after the last one as the option says", () => {
  const fifth = (pagesAfterEnd: ServiceOptions["pagesAfterEnd"]) => {
    const client = createTestClient(scenarioWith({}, { pagesAfterEnd }));
    const [fourth, beyond] = [4, 5].map((number) => client.get(`/v1/nodes?limit=10&page=${number}`));
    return { status: beyond!.status, records: json(beyond!).data, last: json(fourth!).data };
  };
  expect(fifth("empty")).toMatchObject({ status: 200, records: [] });
  expect(fifth("not_found").status).toBe(404);
  expect(fifth("rejected").status).toBe(400);
  const { records, last } = fifth("last");
  expect(records).toEqual(last);
  const empty = createTestClient(scenarioWith({ nodes: 0 }, { pagesAfterEnd: "not_found" }));
  expect(empty.get("/v1/nodes").status).toBe(200);
});

describe("a list with duplicates", () => {
  test.each(["/v1/nodes", "/v1/sessions"])("repeats its first records at its end: %s", (path) => {
    const faults = [always({ kind: "duplicates", records: 2 }, `GET ${path}`)];
    const once = readAllPages(createTestClient(scenarioWith()), path).map(({ id }) => id);
    for (const limit of [7, 16, 41, 1_000]) {
      const ids = readAllPages(createTestClient(scenarioWith({ faults })), path, limit).map(({ id }) => id);
      expect(ids).toEqual([...once, ...once.slice(0, 2)]);
    }
    expect(page(createTestClient(scenarioWith({ faults })), path).pagination.total).toBe(once.length + 2);
  });

  test("gives the duplicates ids of their own, which can't be read", () => {
    const client = createTestClient(
      scenarioWith({ faults: [always({ kind: "duplicates", records: 2, newIds: true })] }),
    );
    const ids = readAllPages(client, "/v1/nodes").map(({ id }) => id);
    expect(ids.slice(-2)).toEqual(ids.slice(0, 2).map((id) => `${id}_copy`));
    expect(client.get(`/v1/nodes/${ids.at(-1)}`).status).toBe(404);
  });

  test("has at most as many duplicates as records", () => {
    const client = createTestClient(scenarioWith({ nodes: 3, faults: [always({ kind: "duplicates", records: 10 })] }));
    expect(readAllPages(client, "/v1/nodes")).toHaveLength(6);
  });
});

test.each([
  ["requested", 3],
  ["first", 1],
] as const)("answers with the first page and states the %s page if the page is ignored", (states, stated) => {
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
    createTestClient(scenarioWith({ nodes: 150, faults: [always({ kind: "bad_details", nodes: 0.1, answer })] }));
  const badNodes = (caller: TestClient, status: number) =>
    readAllPages(caller, "/v1/nodes", 151).flatMap(({ id }) => {
      const reply = caller.get(`/v1/nodes/${id}`);
      return reply.status === status && json(reply).id === undefined ? [id] : [];
    });

  test("affect the same nodes, regardless of the answer and the time", () => {
    const bad = badNodes(client("not_found"), 404);
    expect(bad.length / 150).toBeGreaterThan(0.05);
    expect(bad.length / 150).toBeLessThan(0.15);
    const later = client("not_found");
    later.now += 3_600_000;
    expect(badNodes(later, 404)).toEqual(bad);
    expect(badNodes(client("unreadable"), 200)).toEqual(bad);
    expect(badNodes(client("server_error"), 500)).toEqual(bad);
  });

  test("are answered by the first of several faults whose share includes the node", () => {
    const faults = ([0.2, 0.5] as const).map((nodes, index) =>
      always({ kind: "bad_details", nodes, answer: index === 0 ? "not_found" : "server_error" }),
    );
    const caller = createTestClient(scenarioWith({ nodes: 150, faults }));
    const statuses = readAllPages(caller, "/v1/nodes", 151).map(({ id }) => caller.get(`/v1/nodes/${id}`).status);
    const shareOf = (status: number) => statuses.filter((each) => each === status).length / 150;
    expect(Math.abs(shareOf(404) - 0.2)).toBeLessThan(0.1);
    expect(Math.abs(shareOf(500) - 0.3)).toBeLessThan(0.1);
    expect(Math.abs(shareOf(200) - 0.5)).toBeLessThan(0.1);
  });

  test("do not affect the list and the actions of the nodes", () => {
    const caller = client("not_found");
    const [id] = badNodes(caller, 404);
    expect(readAllPages(caller, "/v1/nodes", 151).map((node) => node.id)).toContain(id);
    expect(caller.post(`/v1/nodes/${id}/reboot`).status).toBe(200);
  });
});
