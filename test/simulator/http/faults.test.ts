import { describe, expect, test } from "vitest";
import type { Fault } from "../../../src/config/schema/scenario.ts";
import { actualNodes, actualSessions } from "../../harness/simulator/actual-state.ts";
import { createTestClient, json, START, scenarioWith } from "../api-caller.ts";

const MINUTE_MS = 60_000;
const broken = { kind: "status", status: 500 } as const;

const callerWith = (...faults: Fault[]) => createTestClient(scenarioWith({ nodes: 400, faults }));

describe("a fault affects", () => {
  test("requests between its start and its end", () => {
    const client = callerWith({ afterMs: 1_000, forMs: 2_000, fault: broken });
    const statuses = [999, 1_000, 2_999, 3_000].map((ms) => {
      client.now = START + ms;
      return client.get("/v1/nodes").status;
    });
    expect(statuses).toEqual([200, 500, 500, 200]);
  });

  test.each([
    ["GET /v1/nodes", ["GET /v1/nodes", "GET /v1/nodes/x"]],
    ["GET /v1/nodes?", ["GET /v1/nodes"]],
    ["/v1/nodes", ["GET /v1/nodes", "GET /v1/nodes/x", "POST /v1/nodes/x/reboot"]],
    ["POST", ["POST /v1/nodes/x/reboot"]],
    ["GET /v1/sessions/stats", ["GET /v1/sessions/stats"]],
  ])("the requests that match %s", (match, affected) => {
    const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, match, fault: broken });
    const statuses = {
      "GET /v1/nodes": client.get("/v1/nodes?limit=2").status,
      "GET /v1/nodes/x": client.get("/v1/nodes/x").status,
      "POST /v1/nodes/x/reboot": client.post("/v1/nodes/x/reboot").status,
      "GET /v1/sessions/stats": client.get("/v1/sessions/stats").status,
    };
    expect(Object.entries(statuses).flatMap(([request, status]) => (status === 500 ? [request] : []))).toEqual(
      affected,
    );
  });

  test("a list without a query if the match ends in a question mark", () => {
    const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, match: "GET /v1/nodes?", fault: broken });
    expect(client.get("/v1/nodes").status).toBe(500);
  });

  test("a share of the requests that depends on the seed", () => {
    const statuses = () => {
      const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, share: 0.3, fault: broken });
      return Array.from({ length: 1_000 }, () => client.get("/v1/sessions/stats").status);
    };
    const affected = statuses().filter((status) => status === 500).length;
    expect(affected).toBeGreaterThan(240);
    expect(affected).toBeLessThan(360);
    expect(statuses()).toEqual(statuses());
  });
});

test("a request that a fault answers is not executed but counts for the limit", () => {
  const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, match: "POST", fault: broken });
  const { id } = client.service.network.fleet.nodes[0]!;
  expect(client.post(`/v1/nodes/${id}/reboot`).headers["x-ratelimit-remaining"]).toBe("199");
  expect(client.get(`/v1/nodes/${id}`).headers["x-ratelimit-remaining"]).toBe("198");
  expect(json(client.get(`/v1/nodes/${id}`)).status).toBe("online");
});

describe("an action", () => {
  const rebootWith = (fault: Fault["fault"]) => {
    const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, match: "POST", fault });
    const { id } = client.service.network.fleet.nodes[0]!;
    const reply = client.post(`/v1/nodes/${id}/reboot`);
    return { reply, status: json(client.get(`/v1/nodes/${id}`)).status };
  };

  test("is executed although the service answers with an error", () => {
    const { reply, status } = rebootWith({ kind: "status", status: 504, executed: true });
    expect([reply.status, status]).toEqual([504, "rebooting"]);
  });

  test("is not executed although the service answers with 200", () => {
    const { reply, status } = rebootWith({ kind: "unsuccessful" });
    expect([reply.status, json(reply).success, status]).toEqual([200, false, "online"]);
  });
});

describe("the list", () => {
  const ids = (client: ReturnType<typeof createTestClient>) =>
    json(client.get("/v1/nodes?limit=1000")).data.map(({ id }: { id: string }) => id);

  test("lacks the same share of nodes at every walk, and its total does not count them", () => {
    const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, fault: { kind: "vanished", missing: 0.4 } });
    const { data, pagination } = json(client.get("/v1/nodes?limit=1000"));
    expect(pagination.total).toBe(data.length);
    expect(data.length / 400).toBeGreaterThan(0.5);
    expect(data.length / 400).toBeLessThan(0.7);
    const pages = [1, 2, 3, 4, 5].map((page) => json(client.get(`/v1/nodes?limit=70&page=${page}`)).data);
    expect(pages.flat().map(({ id }: { id: string }) => id)).toEqual(ids(client));
    const sessions = json(client.get("/v1/sessions?limit=1000"));
    expect(sessions.data).toHaveLength(sessions.pagination.total);
    expect(sessions.data.length).toBeLessThan(300);
  });

  test("is empty", () => {
    const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, fault: { kind: "empty_list" } });
    expect(json(client.get("/v1/nodes"))).toEqual({ data: [], pagination: { page: 1, limit: 50, total: 0 } });
    expect(json(client.get("/v1/sessions")).data).toEqual([]);
  });

  test("contains a share of bad records", () => {
    const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, fault: { kind: "bad_records", spoiled: 0.2 } });
    const actual = new Map([...actualNodes(client.service)].map((node) => [node.id, node]));
    const { data } = json(client.get("/v1/nodes?limit=1000"));
    const bad = data.filter((node: Record<string, unknown>) => {
      const truth: object = actual.get(String(node.id)) ?? {};
      return Object.entries(node).some(([field, value]) => Reflect.get(truth, field) !== value);
    });
    expect(data).toHaveLength(400);
    expect(bad.length / 400).toBeGreaterThan(0.1);
    expect(bad.length / 400).toBeLessThan(0.3);
    const text = JSON.stringify(bad);
    for (const corruption of [
      '"hibernating"',
      '"uptime_hours":"many"',
      'we\\"ird\\n\\\\na',
      '"last_seen":"yesterday"',
    ]) {
      expect(text).toContain(corruption);
    }
  });

  test("shows no report after the start of stale_last_seen, although the nodes are healthy", () => {
    const client = callerWith({ afterMs: MINUTE_MS, forMs: 60 * MINUTE_MS, fault: { kind: "stale_last_seen" } });
    client.now += 30 * MINUTE_MS;
    for (const node of json(client.get("/v1/nodes")).data) {
      expect(Date.parse(node.last_seen)).toBeLessThanOrEqual(START + MINUTE_MS);
      expect(node.status).toBe("online");
    }
    client.now += 31 * MINUTE_MS;
    const lastSeen = json(client.get("/v1/nodes")).data.map(({ last_seen }: { last_seen: string }) =>
      Date.parse(last_seen),
    );
    expect(Math.min(...lastSeen)).toBeGreaterThan(client.now - MINUTE_MS);
  });
});

test("all nodes of a region that is cut off are offline and lose their sessions until it is reconnected", () => {
  const fault = { kind: "region_dark", region: "eu-west" } as const;
  const client = callerWith({ afterMs: MINUTE_MS, forMs: 10 * MINUTE_MS, fault });
  const nodesAt = (ms: number) => {
    client.now = START + ms;
    client.get("/v1/nodes");
    return [...actualNodes(client.service)].filter(({ region }) => region === "eu-west");
  };
  const online = nodesAt(MINUTE_MS - 1);
  expect(online.length).toBeGreaterThan(20);
  expect(new Set(online.map(({ status }) => status))).toEqual(new Set(["online"]));
  const offline = nodesAt(5 * MINUTE_MS);
  expect(new Set(offline.map(({ status, active_sessions }) => `${status} ${active_sessions}`))).toEqual(
    new Set(["offline 0"]),
  );
  expect(offline.every(({ last_seen }) => Date.parse(last_seen) <= START + MINUTE_MS)).toBe(true);
  const ids = new Set(offline.map(({ id }) => id));
  const lost = [...actualSessions(client.service)]
    .filter(({ node_id }) => ids.has(node_id))
    .map(({ status }) => status);
  expect(lost).toEqual(expect.arrayContaining(["error", "timeout"]));
  expect(lost).not.toContain("active");
  const elsewhere = [...actualNodes(client.service)].filter(({ region }) => region !== "eu-west");
  expect(new Set(elsewhere.map(({ status }) => status))).toEqual(new Set(["online"]));
  expect(new Set(nodesAt(11 * MINUTE_MS).map(({ status }) => status))).toEqual(new Set(["online"]));
});

test("clock skew affects all timestamps from its start on, and none from before", () => {
  const skewMs = 5 * MINUTE_MS;
  const client = callerWith({ afterMs: MINUTE_MS, forMs: 60 * MINUTE_MS, fault: { kind: "clock_skew", skewMs } });
  const session = json(client.get("/v1/sessions?limit=1")).data[0];
  const path = "/v1/nodes?limit=1";
  const resetInSeconds = Number(client.get(path).headers["x-ratelimit-reset"]) - client.now / 1_000;
  client.now += 2 * MINUTE_MS;
  const reply = client.get(path);
  expect(reply.headers.date).toBe(new Date(client.now + skewMs).toUTCString());
  const reset = Number(reply.headers["x-ratelimit-reset"]) - (client.now + skewMs) / 1_000;
  expect(Math.abs(reset - resetInSeconds)).toBeLessThanOrEqual(1);
  const seen = Date.parse(json(reply).data[0].last_seen) - skewMs;
  expect(seen).toBeGreaterThan(client.now - 16_000);
  expect(seen).toBeLessThanOrEqual(client.now);
  expect(json(client.get(`/v1/sessions/${session.id}`)).started_at).toBe(session.started_at);
  const hours = json(client.get("/v1/sessions/stats/hourly")).data;
  for (const { hour } of hours) expect(Date.parse(hour) % 3_600_000).toBe(0);
});

test("a wrong date changes the Date header and nothing else, also that of a gateway", () => {
  const wrongDate = { kind: "wrong_date", offsetMs: 60 * MINUTE_MS } as const;
  const client = callerWith({ afterMs: 0, forMs: 2 * MINUTE_MS, match: "GET /v1/nodes?", fault: wrongDate });
  const correct = callerWith();
  const { headers, body } = client.get("/v1/nodes?limit=1");
  expect(headers).toEqual({
    ...correct.get("/v1/nodes?limit=1").headers,
    date: new Date(client.now + wrongDate.offsetMs).toUTCString(),
  });
  expect(body).toBe(correct.get("/v1/nodes?limit=1").body);
  client.service.setFaults([
    { afterMs: 0, forMs: MINUTE_MS, fault: wrongDate },
    { afterMs: 0, forMs: MINUTE_MS, fault: { kind: "status", status: 502, bare: true } },
  ]);
  expect(client.get("/v1/nodes").headers.date).toBe(headers.date);
});

test("the faults can be replaced while the simulation runs", () => {
  const client = callerWith({ afterMs: 0, forMs: Number.POSITIVE_INFINITY, fault: broken });
  expect(client.get("/v1/nodes").status).toBe(500);
  client.service.setFaults([
    { afterMs: 0, forMs: Number.POSITIVE_INFINITY, fault: { kind: "region_dark", region: "us-east" } },
  ]);
  const offline = () =>
    json(client.get("/v1/nodes?limit=1000")).data.filter((node: { status: string }) => node.status === "offline");
  expect(new Set(offline().map(({ region }: { region: string }) => region))).toEqual(new Set(["us-east"]));
  client.service.setFaults([]);
  expect(offline()).toEqual([]);
});

describe("a gateway in front of the service", () => {
  const limit = { kind: "gateway_limit", requestsPerMinute: 60, burst: 2, retryAfter: 5 } as const;

  test("answers requests beyond its limit without the service's headers, and the service does not count them", () => {
    const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, match: "/v1/nodes", fault: limit });
    const replies = [0, 0, 0, 0].map(() => client.get("/v1/nodes?limit=1"));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    expect(replies[1]!.headers["x-ratelimit-remaining"]).toBe("198");
    expect(replies[2]!.headers).toMatchObject({ "retry-after": "5", date: expect.any(String) });
    expect(Object.keys(replies[2]!.headers).filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
    client.now += 1_000;
    expect(client.get("/v1/nodes?limit=1").headers["x-ratelimit-remaining"]).toBe("198");
  });

  test("answers with a bare status instead of the service", () => {
    const client = callerWith({ afterMs: 0, forMs: 1_000, fault: { kind: "status", status: 502, bare: true } });
    const bare = client.get("/v1/nodes");
    expect(bare.status).toBe(502);
    expect(bare.headers["x-ratelimit-limit"]).toBeUndefined();
    client.now += 1_000;
    expect(client.get("/v1/nodes").headers["x-ratelimit-remaining"]).toBe("199");
  });
});

test("the fault limit_headers replaces single headers", () => {
  const fault = { kind: "limit_headers", limit: "0", reset: "soon" } as const;
  const client = callerWith({ afterMs: 0, forMs: MINUTE_MS, fault });
  expect(client.get("/v1/nodes").headers).toMatchObject({
    "x-ratelimit-limit": "0",
    "x-ratelimit-remaining": "199",
    "x-ratelimit-reset": "soon",
  });
});

test("a cache serves a body again until it is too old, with the headers of the moment", () => {
  const client = callerWith({
    afterMs: 0,
    forMs: 5 * MINUTE_MS,
    match: "GET",
    fault: { kind: "cached", maxAgeMs: MINUTE_MS },
  });
  const replyAt = (ms: number) => {
    client.now = START + ms;
    return client.get("/v1/nodes?limit=2");
  };
  const [first, again, later] = [replyAt(0), replyAt(59_000), replyAt(60_000)];
  expect(again.body).toBe(first.body);
  expect(again.headers.date).not.toBe(first.headers.date);
  expect(later.body).not.toBe(first.body);
  expect(client.get("/v1/nodes?limit=3").body).not.toBe(later.body);
});
