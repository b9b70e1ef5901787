import { describe, expect, test } from "vitest";
import type { ServiceOptions } from "../../../src/model/scenario.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { beginRequest, finishRequest } from "../../../src/simulator/http/service.ts";
import { rateLimitedCount, replyCounts } from "../../../src/simulator/inspection.ts";
import { createTestClient, json, START, scenarioWith } from "../api-caller.ts";

const admittedOf = (path: string, calls: number, options: Partial<ServiceOptions>) => {
  const client = createTestClient(scenarioWith({}, options));
  return Array.from({ length: calls }, () => client.get(path)).filter(({ status }) => status === 200).length;
};

test("each category has its own limit: the burst of a token bucket, the limit of a window", () => {
  expect(admittedOf("/v1/nodes?limit=1", 300, { limiter: "token_bucket" })).toBe(200);
  expect(admittedOf("/v1/nodes?limit=1", 300, { limiter: "fixed_window" })).toBe(100);
  expect(admittedOf("/v1/sessions?limit=1", 1_200, { limiter: "token_bucket" })).toBe(1_000);
  expect(admittedOf("/v1/sessions?limit=1", 1_200, { limiter: "sliding_window" })).toBe(500);
});

test("one category's calls leave the other alone, and one key's calls the other key", () => {
  const keys = [SIMULATION_KEY, "other"].map((key) => ({ key, scopes: ["nodes:read", "sessions:read"] }));
  const client = createTestClient(scenarioWith({ keys }));
  for (let call = 0; call < 201; call += 1) client.get("/v1/nodes?limit=1");
  expect(client.get("/v1/nodes").status).toBe(429);
  expect(client.get("/v1/sessions/stats").status).toBe(200);
  expect(client.get("/v1/nodes", { authorization: "Bearer other" }).status).toBe(200);
});

test("the 429 is as section 7.1 has it, to the letter", () => {
  const client = createTestClient(scenarioWith({}, { limiter: "fixed_window" }));
  for (let call = 0; call < 100; call += 1) client.get("/v1/nodes?limit=1");
  const refused = client.get("/v1/nodes?limit=1");
  expect(refused.status).toBe(429);
  expect(refused.headers).toEqual({
    date: new Date(START).toUTCString(),
    "content-type": "application/json",
    "x-ratelimit-limit": "100",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": String(Date.UTC(2026, 3, 15, 10, 21) / 1_000),
    "retry-after": "30",
  });
  expect(json(refused)).toEqual({
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

describe("the headers of every response", () => {
  const stated = (options: Partial<ServiceOptions>, headers?: Record<string, string>) => {
    const client = createTestClient(scenarioWith({}, { plan: "starter", limiter: "fixed_window", ...options }));
    client.get("/v1/nodes");
    const reply = client.get("/v1/sessions/stats", headers);
    return ["limit", "remaining", "reset"].map((name) => reply.headers[`x-ratelimit-${name}`]);
  };
  const reset = String(Date.UTC(2026, 3, 15, 10, 21) / 1_000);

  test("speak of the category or of the plan, or are left out, as the option says", () => {
    expect(stated({ rateLimitHeaders: "category" })).toEqual(["500", "499", reset]);
    expect(stated({ rateLimitHeaders: "plan" })).toEqual(["100", "98", reset]);
    expect(stated({ rateLimitHeaders: "plan", plan: "enterprise" })).toEqual(["500", "499", reset]);
    expect(stated({ rateLimitHeaders: "off" })).toEqual([undefined, undefined, undefined]);
  });

  test("are there without a key, too, and then speak of those who have none", () => {
    expect(stated({ rateLimitHeaders: "category" }, {})).toEqual(["500", "499", reset]);
  });

  test("are on a 429 even if they are left out elsewhere", () => {
    const client = createTestClient(scenarioWith({}, { rateLimitHeaders: "off" }));
    for (let call = 0; call < 200; call += 1) client.get("/v1/nodes?limit=1");
    expect(client.get("/v1/nodes").headers).toMatchObject({ "x-ratelimit-remaining": "0", "retry-after": "1" });
  });
});

describe("the plan", () => {
  test("limits the requests a minute over all categories together, and a refused call uses nothing of either", () => {
    const client = createTestClient(scenarioWith({}, { plan: "starter", limiter: "fixed_window" }));
    const statuses = Array.from({ length: 120 }, (_, call) =>
      client.get(call % 2 === 0 ? "/v1/nodes?limit=1" : "/v1/sessions/stats"),
    ).map(({ status }) => status);
    expect(statuses.indexOf(429)).toBe(100);
    expect(client.get("/v1/sessions/stats").headers["x-ratelimit-limit"]).toBe("100");
    client.now += 60_000;
    expect(client.get("/v1/nodes").headers["x-ratelimit-remaining"]).toBe("99");
  });

  test.each([429, 403] as const)("limits what is under way at once, with %d", (planCapStatus) => {
    const client = createTestClient(scenarioWith({}, { plan: "starter", planCapStatus }));
    for (let call = 0; call < 11; call += 1) beginRequest(client.service);
    expect(client.get("/v1/nodes").status).toBe(planCapStatus);
    finishRequest(client.service);
    expect(client.get("/v1/nodes").status).toBe(200);
  });

  test("limits the calls of a month, until the next one begins (UTC); a refused call is not counted", () => {
    const client = createTestClient(scenarioWith({ nodes: 1, sessions: 0 }, { plan: "starter" }));
    for (let call = 0; call < 100_000; call += 1) {
      client.now += 600;
      expect(client.get("/v1/sessions/stats/none").status).toBe(404);
    }
    const refused = client.get("/v1/nodes");
    const nextMonth = Date.UTC(2026, 4, 1);
    expect(refused.headers).toMatchObject({
      "x-ratelimit-limit": "100000",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(nextMonth / 1_000),
      "retry-after": String(Math.ceil((nextMonth - client.now) / 1_000)),
    });
    expect(refused.status).toBe(429);
    client.now = nextMonth - 1;
    expect(client.get("/v1/nodes").status).toBe(429);
    client.now = nextMonth;
    expect(client.get("/v1/nodes").status).toBe(200);
  });
});
