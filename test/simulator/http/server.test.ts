import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { FaultKind } from "../../../src/config/schema/scenario.ts";
import { createVirtualClock, type VirtualClock } from "../../../src/simulator/clock.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { type SimulatorServer, startServer } from "../../../src/simulator/http/server.ts";
import { createService, replyCounts, type SimulatedService } from "../../../src/simulator/http/service.ts";
import { START, scenarioWith } from "../api-caller.ts";

let clock: VirtualClock;
let service: SimulatedService;
let server: SimulatorServer;

beforeEach(async () => {
  clock = createVirtualClock(START);
  service = createService(scenarioWith(), START);
  server = await startServer(service, clock, { port: 0 });
});

afterEach(() => server.close());

const setFault = (fault: FaultKind) => service.setFaults([{ afterMs: 0, forMs: Number.POSITIVE_INFINITY, fault }]);

const get = (path: string, signal?: AbortSignal) =>
  fetch(server.url + path, {
    headers: { authorization: `Bearer ${SIMULATION_KEY}` },
    redirect: "manual",
    ...(signal === undefined ? {} : { signal }),
  });

/** Waits until a condition is met, at most for the timeout of the test. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

test("serves the handler's replies at the time of the clock", async () => {
  await clock.advance(90_000);
  const reply = await get("/v1/nodes?limit=3");
  expect(reply.status).toBe(200);
  expect(reply.headers.get("date")).toBe(new Date(START + 90_000).toUTCString());
  expect(reply.headers.get("x-ratelimit-remaining")).toBe("199");
  const { data, pagination } = (await reply.json()) as { data: { id: string }[]; pagination: object };
  expect(data.map(({ id }) => id)).toEqual(service.network.fleet.nodes.slice(0, 3).map(({ id }) => id));
  expect(pagination).toEqual({ page: 1, limit: 3, total: 40 });
});

test("passes the body of a POST to the service", async () => {
  const [node, other] = service.network.fleet.nodes;
  const post = (path: string, body?: string) => {
    const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
    return fetch(server.url + path, { method: "POST", headers, ...(body === undefined ? {} : { body }) });
  };
  const body = JSON.stringify({ reason: "Überprüfung", duration_minutes: 5 });
  const reply = await post(`/v1/nodes/${node!.id}/quarantine`, body);
  expect(await reply.json()).toMatchObject({ success: true, reason: "Überprüfung" });
  expect((await post(`/v1/nodes/${other!.id}/disconnect`)).status).toBe(200);
  expect((await post(`/v1/nodes/${other!.id}/quarantine`, "x".repeat(200_000))).status).toBe(413);
});

test("a hang keeps the request open until the client disconnects", async () => {
  setFault({ kind: "hang" });
  const abort = new AbortController();
  const outcome = get("/v1/nodes", abort.signal).catch((error: Error) => error.name);
  await until(() => replyCounts(service).length > 0);
  expect(service.inFlight).toBe(1);
  abort.abort();
  expect(await outcome).toBe("AbortError");
  await until(() => service.inFlight === 0);
});

test.each(["reset", "lost_reply"] as const)("a %s resets the connection before the reply", async (kind) => {
  setFault({ kind });
  const outcome = await get("/v1/nodes").catch((error: Error) => (error.cause as { code: string }).code);
  expect(outcome).toBe("ECONNRESET");
});

test("a truncated body ends in the middle", async () => {
  setFault({ kind: "truncate" });
  const reply = await get("/v1/nodes?limit=20");
  expect(Number(reply.headers.get("content-length"))).toBeGreaterThan(4_000);
  await expect(reply.text()).rejects.toThrow("terminated");
});

test("a slow drip sends at its rate on the clock", async () => {
  setFault({ kind: "slow_drip", bytesPerSecond: 1_000 });
  const reply = await get("/v1/nodes?limit=2");
  const length = Number(reply.headers.get("content-length"));
  let done = false;
  const body = reply.text().finally(() => {
    done = true;
  });
  let passedMs = 0;
  while (!done) {
    await until(() => done || clock.sleeperCount() > 0);
    if (done) break;
    await clock.advance(100);
    passedMs += 100;
  }
  expect((await body).length).toBe(length);
  expect(passedMs).toBe(Math.ceil(length / 100) * 100);
});

test("a huge body has the length of the fault and is valid JSON", async () => {
  setFault({ kind: "huge_body", bytes: 3_000_000 });
  const body = await (await get("/v1/nodes?limit=1")).text();
  expect([body.length, JSON.parse(body).data.length]).toEqual([3_000_000, 1]);
});

test("a request ends when the client disconnects during a huge body or its own request", async () => {
  setFault({ kind: "huge_body", bytes: 500_000_000 });
  const abort = new AbortController();
  await get("/v1/nodes", abort.signal);
  abort.abort();
  await until(() => service.inFlight === 0);
  service.setFaults([]);
  const socket = connect(server.port, "127.0.0.1");
  socket.write("POST /v1/nodes/x/reboot HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  await until(() => service.inFlight === 1);
  socket.destroy();
  await until(() => service.inFlight === 0);
  expect((await get("/v1/nodes")).status).toBe(200);
});

test("rejects with the system's error if the address is in use", async () => {
  await expect(startServer(service, clock, { port: server.port })).rejects.toThrow("EADDRINUSE");
});

test("a reply that HTTP cannot represent breaks only its connection", async () => {
  setFault({ kind: "redirect", location: "http://bücher.example/\u{1f4da}" });
  await expect(get("/v1/nodes")).rejects.toThrow("fetch failed");
  service.setFaults([]);
  expect((await get("/v1/nodes")).status).toBe(200);
});
