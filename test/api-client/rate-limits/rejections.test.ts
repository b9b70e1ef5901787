import { describe, expect, test } from "vitest";
import { listNodesCall, readNodeCall, readStatsCall } from "../../../src/api-client/endpoints.ts";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault, FaultKind } from "../../../src/config/schema/scenario.ts";
import { createClientSetup } from "../client-fixture.ts";
import { longestGap, startSaturatingLoad } from "./saturating-client.ts";

const nodes = listNodesCall({ page: 1, limit: 10 });

const always = (fault: FaultKind): Fault => ({ afterMs: 0, forMs: 365 * 24 * 60 * MINUTE_MS, fault });

test("ignores an X-RateLimit-Limit of 0 and continues at the even pace", async () => {
  const { clock, client, service, calls } = createClientSetup();
  service.setFaults([always({ kind: "limit_headers", limit: "0", remaining: "0" })]);
  const load = startSaturatingLoad(client, clock, nodes);
  await clock.advance(30 * MINUTE_MS);
  load.stop();
  expect(calls.length).toBeGreaterThan(30 * 70);
});

test("a reset in milliseconds does not slow down polling", async () => {
  const { clock, client, calls } = createClientSetup({
    service: { limiter: "sliding_counter", rateLimitReset: "milliseconds" },
  });
  const load = startSaturatingLoad(client, clock, nodes);
  await clock.advance(30 * MINUTE_MS);
  load.stop();
  expect(calls.length).toBeGreaterThan(30 * 70);
});

describe("an overloaded service", () => {
  test("gets no call for ten minutes after a 503 with Retry-After: 600, not even a retry", async () => {
    const { clock, client, calls } = createClientSetup({ fault: { kind: "status", status: 503, retryAfter: "600" } });
    const load = startSaturatingLoad(client, clock, readStatsCall);
    await clock.advance(10 * MINUTE_MS);
    load.stop();
    expect(calls.length).toBeLessThanOrEqual(8);
  });

  test("still gets calls of another category", async () => {
    const { clock, client, calls } = createClientSetup({
      fault: { kind: "status", status: 503, retryAfter: "600" },
      match: "/v1/sessions",
    });
    const loads = [
      startSaturatingLoad(client, clock, readStatsCall, 8, "stats"),
      startSaturatingLoad(client, clock, nodes, 8, "walk"),
    ];
    await clock.advance(10 * MINUTE_MS);
    for (const load of loads) load.stop();
    expect(calls.filter((call) => call === "nodes_list 200").length).toBeGreaterThan(700);
  });

  test("gets a call after a quarter of an hour although Retry-After is a day", async () => {
    const { clock, client, calls } = createClientSetup({ fault: { kind: "status", status: 503, retryAfter: "86400" } });
    const load = startSaturatingLoad(client, clock, readStatsCall);
    await clock.advance(16 * MINUTE_MS);
    load.stop();
    expect(calls.length).toBeGreaterThan(1);
    expect(calls.length).toBeLessThanOrEqual(17);
  });

  test("is named in the error of a call that it delays for too long", async () => {
    const { clock, client } = createClientSetup({ fault: { kind: "status", status: 503, retryAfter: "600" } });
    const get = () => client.get(readStatsCall, "stats", new AbortController().signal);
    const first = get();
    await clock.advance(MINUTE_MS);
    const second = get();
    await clock.advance(6 * MINUTE_MS);
    const message = /^the service answered earlier calls with 429, or with 5xx and Retry-After, and allows no call for/;
    expect(await Promise.all([first, second])).toMatchObject([
      { ok: false, error: { kind: "server_error" } },
      { ok: false, error: { kind: "rate_limited", message: expect.stringMatching(message) } },
    ]);
  });

  test("gets the retry after a short Retry-After", async () => {
    const { clock, client, service, calls } = createClientSetup({
      fault: { kind: "status", status: 503, retryAfter: "3" },
    });
    const answer = client.get(readStatsCall, "walk", new AbortController().signal);
    await clock.advance(2 * SECOND_MS);
    service.setFaults([]);
    await clock.advance(MINUTE_MS);
    expect((await answer).ok).toBe(true);
    expect(calls).toEqual(["stats 503", "stats 200"]);
  });

  test("gets no retry of a read of one node before a short Retry-After, and other calls meanwhile", async () => {
    const { clock, client, calls } = createClientSetup({
      fault: { kind: "status", status: 503, retryAfter: "5" },
      match: "GET /v1/nodes/",
    });
    void client.get(readNodeCall("node_1"), "detail", new AbortController().signal);
    await clock.advance(4 * SECOND_MS);
    void client.get(nodes, "walk", new AbortController().signal);
    await clock.advance(SECOND_MS);
    expect(calls).toEqual(["node 503", "nodes_list 200"]);
    await clock.advance(MINUTE_MS);
    expect(calls).toEqual(["node 503", "nodes_list 200", "node 503", "node 503"]);
  });
});

test("calls become rarer with each Retry-After: 1, as the backoff doubles", async () => {
  const { clock, client, calls } = createClientSetup({ fault: { kind: "status", status: 429, retryAfter: "1" } });
  const load = startSaturatingLoad(client, clock, readStatsCall, 1);
  await clock.advance(30 * MINUTE_MS);
  load.stop();
  // 1 s, 2 s, 4 s … 300 s, with full jitter: without doubling it would be some 600.
  expect(calls.length).toBeLessThan(40);
});

describe.each<FaultKind>([
  { kind: "status", status: 502, bare: true },
  { kind: "status", status: 429, retryAfter: "7", bare: true },
])("one response of a gateway without X-RateLimit headers: $status", (fault) => {
  test("polling continues within ten seconds", async () => {
    const { clock, client, service, calls } = createClientSetup();
    const refused = () => calls.includes(`nodes_list ${"status" in fault ? fault.status : ""}`);
    // The first responses of a full bucket: 200 left.
    let load = startSaturatingLoad(client, clock, nodes, 1);
    await clock.advance(2 * MINUTE_MS);
    load.stop();
    await clock.advance(3 * MINUTE_MS);
    load = startSaturatingLoad(client, clock, nodes, 40);
    await clock.advance(20 * SECOND_MS);
    expect(load.answers.length).toBeGreaterThan(60);
    service.setFaults([always(fault)]);
    while (!refused()) await clock.advance(10);
    service.setFaults([]);
    const from = clock.monotonic();
    await clock.advance(2 * MINUTE_MS);
    load.stop();
    const moments = load.answers.filter(({ error }) => error === null).map(({ at }) => at);
    expect(longestGap(moments, from, from + MINUTE_MS) * MINUTE_MS).toBeLessThan(10 * SECOND_MS);
  });
});
