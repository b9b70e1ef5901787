import { describe, expect, test } from "vitest";
import type { Fault, FaultKind } from "../../../src/config/schema/scenario.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createService, replyCounts } from "../../../src/simulator/http/service.ts";
import { createSimulatedTransport, type NetworkOptions } from "../../harness/simulator/transport.ts";
import { START, scenarioWith } from "../api-caller.ts";

const headers = { Authorization: `Bearer ${SIMULATION_KEY}` };

/** Creates a service behind a simulated network on a virtual clock. */
function network(fault?: FaultKind, options: NetworkOptions = { latencyMs: 20 }, change: Partial<Fault> = {}) {
  const clock = createVirtualClock(START);
  const faults = fault === undefined ? [] : [{ afterMs: 0, forMs: 3_600_000, fault, ...change }];
  const service = createService(scenarioWith({ faults }), START);
  const transport = createSimulatedTransport(service, clock, options);
  /** Sends a request, advances the clock by `ms` and returns the outcome; null: there is none yet. */
  const send = async (path: string, ms: number, signal = new AbortController().signal, body?: string) => {
    let outcome: Awaited<ReturnType<typeof transport.request>> | null = null;
    const request = { method: body === undefined ? ("GET" as const) : ("POST" as const), path, headers };
    void transport.request(body === undefined ? request : { ...request, body }, signal).then((received) => {
      outcome = received;
    });
    await clock.advance(ms);
    return outcome as Awaited<ReturnType<typeof transport.request>> | null;
  };
  const text = async (path: string) => {
    const outcome = await send(path, 20);
    return outcome?.ok ? new TextDecoder().decode(outcome.value.body) : JSON.stringify(outcome);
  };
  return { clock, service, transport, send, text };
}

test("a response arrives after the latency", async () => {
  const { send } = network();
  expect(await send("/v1/nodes?limit=2", 19)).toBeNull();
  const outcome = await network().send("/v1/nodes?limit=2", 20);
  expect(outcome).toMatchObject({ ok: true, value: { status: 200, headers: { "content-type": "application/json" } } });
});

test("jitter varies the latency around its mean, identically in every run", async () => {
  const arrivals = async () => {
    const { clock, transport } = network(undefined, { latencyMs: 100, jitter: 0.5 });
    const times: number[] = [];
    for (let call = 0; call < 20; call += 1) {
      const request = { method: "GET" as const, path: "/v1/sessions/stats", headers };
      void transport.request(request, new AbortController().signal).then(() => times.push(clock.monotonic()));
    }
    await clock.advance(200);
    return times;
  };
  const times = await arrivals();
  expect(times).toHaveLength(20);
  expect(Math.min(...times)).toBeGreaterThanOrEqual(50);
  expect(Math.max(...times)).toBeLessThanOrEqual(150);
  expect(new Set(times).size).toBeGreaterThan(10);
  expect(await arrivals()).toEqual(times);
});

test("only an abort before the arrival prevents the execution of a request", async () => {
  const { clock, service, send } = network();
  const { id } = service.network.fleet.nodes[0]!;
  for (const [afterMs, status] of [
    [5, "online"],
    [15, "rebooting"],
  ] as const) {
    const abort = new AbortController();
    void clock.sleep(afterMs).then(() => abort.abort());
    const outcome = await send(`/v1/nodes/${id}/reboot`, 20, abort.signal, "{}");
    expect(outcome).toMatchObject({ ok: false, error: { kind: "aborted" } });
    expect(service.network.fleet.nodes[0]!.status).toBe(status);
  }
  expect(await send("/v1/nodes", 20, AbortSignal.abort())).toMatchObject({ ok: false, error: { kind: "aborted" } });
  expect(service.inFlight).toBe(0);
});

test("counts concurrent requests", async () => {
  const { clock, service, transport } = network();
  for (let call = 0; call < 3; call += 1) {
    void transport.request({ method: "GET", path: "/v1/nodes", headers }, new AbortController().signal);
  }
  expect(service.inFlight).toBe(3);
  await clock.advance(20);
  expect(service.inFlight).toBe(0);
});

test("the service works for a minute on a request that it never answers, even if its client has left", async () => {
  const { clock, service, send } = network({ kind: "hang" }, undefined, { match: "GET /v1/nodes" });
  Object.assign(service.apiLimits.plan, { concurrentRequests: 1 });
  const abort = new AbortController();
  void clock.sleep(10_000).then(() => abort.abort());
  expect(await send("/v1/nodes", 10_000, abort.signal)).toMatchObject({ ok: false, error: { kind: "aborted" } });
  expect(await send("/v1/sessions/stats", 50_010)).toMatchObject({ ok: true, value: { status: 429 } });
  expect(await send("/v1/sessions/stats", 20)).toMatchObject({ ok: true, value: { status: 200 } });
});

test("the service's time follows the monotonic clock and ignores steps of the wall clock", async () => {
  const { clock, service, send } = network();
  await clock.advance(10_000);
  clock.stepWallClock(3_600_000);
  const late = createSimulatedTransport(service, clock);
  await send("/v1/nodes", 20);
  expect(service.network.now).toBe(START + 10_010);
  void late.request({ method: "GET", path: "/v1/nodes", headers }, new AbortController().signal);
  await clock.advance(20);
  expect(service.network.now).toBe(START + 10_030);
});

describe("a client observes", () => {
  test("no response to a hang until it aborts", async () => {
    const { clock, service, send } = network({ kind: "hang" });
    const abort = new AbortController();
    expect(await send("/v1/nodes", 3_600_000 - 1, abort.signal)).toBeNull();
    abort.abort();
    await clock.advance(0);
    expect(service.inFlight).toBe(0);
    expect(replyCounts(service)).toEqual([{ endpoint: "GET /v1/nodes", status: "hang", count: 1 }]);
  });

  test.each([{ kind: "reset" }, { kind: "truncate" }, { kind: "lost_reply" }] as const)(
    "a reset for the fault $kind",
    async (fault) => {
      const outcome = await network(fault).send("/v1/nodes", 20);
      expect(outcome).toMatchObject({ ok: false, error: { kind: "reset" } });
    },
  );

  test("the same for a lost reply, whose request was executed, and a reset, whose request was not", async () => {
    for (const [kind, status] of [
      ["lost_reply", "rebooting"],
      ["reset", "online"],
    ] as const) {
      const { service, send } = network({ kind });
      const { id } = service.network.fleet.nodes[0]!;
      await send(`/v1/nodes/${id}/reboot`, 20, undefined, "{}");
      expect(service.network.fleet.nodes[0]!.status).toBe(status);
    }
  });

  test("the complete body of a slow drip after the time for its bytes", async () => {
    const { send } = network({ kind: "slow_drip", bytesPerSecond: 1_000 });
    expect(await send("/v1/nodes?limit=20", 2_000)).toBeNull();
    const outcome = await network({ kind: "slow_drip", bytesPerSecond: 1_000 }).send("/v1/nodes?limit=20", 60_000);
    expect(outcome).toMatchObject({ ok: true });
  });

  test("a huge body as too large, or as blanks before the JSON", async () => {
    const tooLarge = await network({ kind: "huge_body", bytes: 17 * 1_024 * 1_024 }).send("/v1/nodes", 20);
    expect(tooLarge).toMatchObject({ ok: false, error: { kind: "too_large" } });
    const within = await network({ kind: "huge_body", bytes: 30_000 }).text("/v1/nodes?limit=2");
    expect([within.length, JSON.parse(within).data.length]).toEqual([30_000, 2]);
  });

  test("invalid JSON, HTML or JSON of another shape", async () => {
    expect(() => JSON.parse("[1,")).toThrow();
    const bad = await network({ kind: "bad_json" }).text("/v1/nodes?limit=2");
    expect(() => JSON.parse(bad)).toThrow();
    expect(await network({ kind: "html" }).text("/v1/nodes")).toContain("<!doctype html>");
    expect(JSON.parse(await network({ kind: "wrong_shape" }).text("/v1/nodes")).data).not.toBeInstanceOf(Array);
  });

  test("redirects and statuses with their Retry-After", async () => {
    const redirect = await network({ kind: "redirect", location: "http://elsewhere.example/" }).send("/v1/nodes", 20);
    expect(redirect).toMatchObject({ value: { status: 302, headers: { location: "http://elsewhere.example/" } } });
    const busy = await network({ kind: "status", status: 503, retryAfter: "7" }).send("/v1/nodes", 20);
    expect(busy).toMatchObject({ value: { status: 503, headers: { "retry-after": "7" } } });
    const date = new Date(START + 60_000).toUTCString();
    const limited = await network({ kind: "status", status: 429, retryAfter: date }).send("/v1/nodes", 20);
    expect(limited).toMatchObject({ value: { status: 429, headers: { "retry-after": date } } });
    const later = await network({ kind: "status", status: 503, retryAfterDateMs: 120_000 }).send("/v1/nodes", 20);
    const headers = later?.ok ? later.value.headers : {};
    expect(Date.parse(headers["retry-after"] ?? "") - Date.parse(headers.date ?? "")).toBe(120_000);
    const bare = await network({ kind: "status", status: 429 }).send("/v1/nodes", 20);
    expect(bare?.ok && bare.value.headers["retry-after"]).toBeUndefined();
  });
});
