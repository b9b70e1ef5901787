import { describe, expect, test } from "vitest";
import type { ServiceOptions } from "../../../src/config/schema/scenario.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import {
  beginRequest,
  createService,
  finishRequest,
  handleRequest,
  rateLimitedCount,
  replyCounts,
} from "../../../src/simulator/http/service.ts";
import { createTestClient, json, START, scenarioWith } from "../api-caller.ts";

const admittedOf = (path: string, calls: number, options: Partial<ServiceOptions>) => {
  const client = createTestClient(scenarioWith({}, options));
  return Array.from({ length: calls }, () => client.get(path)).filter(({ status }) => status === 200).length;
};

test("each category has a limit: a token bucket admits the burst, a window only the limit", () => {
  expect(admittedOf("/v1/nodes?limit=1", 300, { limiter: "token_bucket" })).toBe(200);
  expect(admittedOf("/v1/nodes?limit=1", 300, { limiter: "fixed_window" })).toBe(100);
  expect(admittedOf("/v1/sessions?limit=1", 1_200, { limiter: "token_bucket" })).toBe(1_000);
  expect(admittedOf("/v1/sessions?limit=1", 1_200, { limiter: "sliding_window" })).toBe(500);
});

test("each instance counts the requests that it receives, so its headers contradict those of the others", () => {
  const client = createTestClient(scenarioWith({}, { limiter: "fixed_window", instances: 2 }));
  const replies = Array.from({ length: 300 }, () => client.get("/v1/nodes?limit=1"));
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(200);
  const remaining = replies.map(({ headers }) => Number(headers["x-ratelimit-remaining"]));
  expect(remaining.slice(0, 100).some((calls, index) => index > 0 && calls > remaining[index - 1]!)).toBe(true);
});

test("limits each category and each key separately", () => {
  const keys = [SIMULATION_KEY, "other"].map((key) => ({ key, scopes: ["nodes:read", "sessions:read"] }));
  const client = createTestClient(scenarioWith({ keys }));
  for (let call = 0; call < 201; call += 1) client.get("/v1/nodes?limit=1");
  expect(client.get("/v1/nodes").status).toBe(429);
  expect(client.get("/v1/sessions/stats").status).toBe(200);
  expect(client.get("/v1/nodes", { authorization: "Bearer other" }).status).toBe(200);
});

test("the 429 has exactly the form of section 7.1", () => {
  const client = createTestClient(scenarioWith({}, { limiter: "fixed_window" }));
  for (let call = 0; call < 100; call += 1) client.get("/v1/nodes?limit=1");
  const rejected = client.get("/v1/nodes?limit=1");
  expect(rejected.status).toBe(429);
  expect(rejected.headers).toEqual({
    date: new Date(START).toUTCString(),
    "content-type": "application/json",
    "x-ratelimit-limit": "100",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": String(Date.UTC(2026, 3, 15, 10, 21) / 1_000),
    "retry-after": "30",
  });
  expect(json(rejected)).toEqual({
    error: "rate_limit_exceeded",
    message: "Rate limit exceeded. Try again in 30 seconds.",
    retry_after: 30,
  });
  expect(rateLimitedCount(client.service)).toBe(1);
  expect(replyCounts(client.service)).toEqual([
    { endpoint: "GET /v1/nodes", status: 200, count: 100 },
    { endpoint: "GET /v1/nodes", status: 429, count: 1 },
  ]);
});

describe("the rate limit headers", () => {
  const stated = (options: Partial<ServiceOptions>, headers?: Record<string, string>) => {
    const client = createTestClient(scenarioWith({}, { plan: "starter", limiter: "fixed_window", ...options }));
    client.get("/v1/nodes");
    const reply = client.get("/v1/sessions/stats", headers);
    return ["limit", "remaining", "reset"].map((name) => reply.headers[`x-ratelimit-${name}`]);
  };
  const reset = String(Date.UTC(2026, 3, 15, 10, 21) / 1_000);

  test("describe the category or the plan or are omitted, depending on rateLimitHeaders", () => {
    expect(stated({ rateLimitHeaders: "category" })).toEqual(["500", "499", reset]);
    expect(stated({ rateLimitHeaders: "plan" })).toEqual(["100", "98", reset]);
    expect(stated({ rateLimitHeaders: "plan", plan: "enterprise" })).toEqual(["500", "499", reset]);
    expect(stated({ rateLimitHeaders: "off" })).toEqual([undefined, undefined, undefined]);
  });

  test("describe the shared limit of requests without a key", () => {
    expect(stated({ rateLimitHeaders: "category" }, {})).toEqual(["500", "499", reset]);
  });

  test("are present on a 429 even if the option omits them", () => {
    const client = createTestClient(scenarioWith({}, { rateLimitHeaders: "off" }));
    for (let call = 0; call < 200; call += 1) client.get("/v1/nodes?limit=1");
    expect(client.get("/v1/nodes").headers).toMatchObject({ "x-ratelimit-remaining": "0", "retry-after": "1" });
  });
});

describe("the plan", () => {
  test("limits the requests per minute over all categories, and does not count rejected ones", () => {
    const client = createTestClient(scenarioWith({}, { plan: "starter", limiter: "fixed_window" }));
    const statuses = Array.from({ length: 120 }, (_, call) =>
      client.get(call % 2 === 0 ? "/v1/nodes?limit=1" : "/v1/sessions/stats"),
    ).map(({ status }) => status);
    expect(statuses.indexOf(429)).toBe(100);
    expect(client.get("/v1/sessions/stats").headers["x-ratelimit-limit"]).toBe("100");
    client.now += 60_000;
    expect(client.get("/v1/nodes").headers["x-ratelimit-remaining"]).toBe("99");
  });

  test.each([429, 403] as const)("limits concurrent requests with %d", (planCapStatus) => {
    const client = createTestClient(scenarioWith({}, { plan: "starter", planCapStatus }));
    for (let call = 0; call < 11; call += 1) beginRequest(client.service);
    expect(client.get("/v1/nodes").status).toBe(planCapStatus);
    finishRequest(client.service, client.now + 5_000);
    expect(client.get("/v1/nodes").status).toBe(planCapStatus);
    client.now += 5_000;
    expect(client.get("/v1/nodes").status).toBe(200);
  });

  test("limits the calls of a calendar month (UTC)", () => {
    const client = createTestClient(scenarioWith({ nodes: 1, sessions: 0 }, { plan: "starter" }));
    const statuses = new Set<number>();
    for (let call = 0; call < 100_000; call += 1) {
      client.now += 600;
      statuses.add(client.get("/v1/sessions/stats/none").status);
    }
    expect([...statuses]).toEqual([404]);
    const rejected = client.get("/v1/nodes");
    const nextMonth = Date.UTC(2026, 4, 1);
    expect(rejected.headers).toMatchObject({
      "x-ratelimit-limit": "100000",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(nextMonth / 1_000),
      "retry-after": String(Math.ceil((nextMonth - client.now) / 1_000)),
    });
    expect(rejected.status).toBe(429);
    client.now = nextMonth - 1;
    expect(client.get("/v1/nodes").status).toBe(429);
    client.now = nextMonth;
    expect(client.get("/v1/nodes").status).toBe(200);
  });
});

test("custom limits replace those of the plan and the categories", () => {
  const categories = { node_management: { limit: 3, burst: 3, windowMs: 60_000 } };
  const service = createService(scenarioWith(), START, { plan: { callsPerMonth: 5 }, categories });
  const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
  const get = (path: string): number => handleRequest(service, { method: "GET", path, headers }, START).status;
  const nodes = Array.from({ length: 4 }, () => get("/v1/nodes"));
  const sessions = Array.from({ length: 3 }, () => get("/v1/sessions"));
  expect([nodes, sessions]).toEqual([
    [200, 200, 200, 429],
    [200, 200, 429],
  ]);
});
