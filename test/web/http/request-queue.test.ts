import { describe, expect, test } from "vitest";
import { nextTurn, runInSlices } from "../../../src/platform/event-loop.ts";
import { createRequestQueue } from "../../../src/web/http/request-queue.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { emptyHistory, idleRemediation } from "../api/remediation-view-fixture.ts";
import { getRequest, openConnection } from "./connections.ts";
import { sendHttpRequest, startServerWithFiles } from "./secured-server.ts";

const PLAIN = { "web.yml": "http_server_config: { http2: false }" };

describe("a flood of API requests", () => {
  /** Starts a server with a route that blocks the event loop as long as a large fleet does. */
  const heavy = (onServed: () => void) => ({
    nodes: () => ({
      next() {
        onServed();
        const end = performance.now() + 3;
        while (performance.now() < end) {}
        return { done: true, value: { data: [] } } as const;
      },
    }),
  });

  test("does not delay scrapes or timers", async () => {
    let served = 0;
    const { web } = await startServerWithFiles(PLAIN, { deps: heavy(() => served++) });
    const flood = openConnection(web.url, getRequest("/api/v1/nodes").repeat(60));
    await waitUntil("it is under way", () => served > 0);
    const seen: number[] = [];
    for (let scrape = 0; scrape < 3; scrape++) {
      const before = served;
      expect((await sendHttpRequest(web, "/metrics")).status).toBe(200);
      seen.push(served - before);
    }
    const before = served;
    await new Promise((resolve) => setTimeout(resolve, 0));
    seen.push(served - before);
    // Without the queue all sixty would be answered before the first scrape.
    expect(served).toBeLessThan(60);
    expect(Math.max(...seen)).toBeLessThan(12);
    flood.socket.destroy();
  });

  test("is not computed for a client that has disconnected", async () => {
    let served = 0;
    const { web } = await startServerWithFiles(PLAIN, { deps: heavy(() => served++) });
    const flood = openConnection(web.url, getRequest("/api/v1/nodes").repeat(60));
    await waitUntil("it is under way", () => served > 0);
    flood.socket.destroy();
    expect((await sendHttpRequest(web, "/api/v1/nodes")).status).toBe(200);
    expect(served).toBeLessThan(30);
  });

  test("is answered 503 when the queue is full", async () => {
    let served = 0;
    const { web, metrics } = await startServerWithFiles(PLAIN, { deps: heavy(() => served++) });
    const flood = openConnection(web.url, getRequest("/api/v1/nodes").repeat(100));
    await waitUntil("the last one is answered", () => (flood.sofar().match(/HTTP\/1\.1 /g) ?? []).length === 100);
    const busy = flood.sofar().match(/HTTP\/1\.1 503 /g)!.length;
    expect(busy).toBe(100 - served);
    expect(served).toBeGreaterThanOrEqual(64);
    expect(busy).toBeGreaterThan(0);
    expect(flood.sofar()).toContain('"error":"unavailable","message":"too many requests are queued; try again later"');
    expect(metrics["proxywarden_web_refusals_total busy"]).toBe(busy);
  });

  test("leaves half of the event loop free: the pause after a request is as long as the request took", async () => {
    let nowMs = 0;
    const slept: number[] = [];
    const queue = createRequestQueue({
      monotonic: () => nowMs,
      sleep(ms) {
        slept.push(ms);
        return Promise.resolve();
      },
    });
    const work = async (ms: number) => {
      await queue.enter();
      nowMs += ms;
    };
    await Promise.all([work(30), work(0.1), work(9_000), work(5), work(0)]);
    expect(slept).toEqual([30, 250, 5]);
  });

  test.each(["decisions", "nodes/node_1"])(
    "includes the time in which rows of the journal are read for /%s",
    async (path) => {
      let served = 0;
      const reading = async <Rows>(rows: Rows) => {
        served++;
        for (let turn = 0; turn < 3; turn++) await nextTurn();
        clock.nowMs += 20;
        return rows;
      };
      const remediation = {
        ...idleRemediation,
        decisions: () => reading([]),
        historyOf: () => reading(emptyHistory),
      };
      const { web, clock } = await startServerWithFiles(PLAIN, {
        deps: { remediation: () => remediation, node: (id) => ({ id }) },
      });
      const { sofar } = openConnection(web.url, getRequest(`/api/v1/${path}`).repeat(2));
      await waitUntil("the first one is answered", () => sofar().includes("HTTP/1.1 200"));
      expect((await sendHttpRequest(web, "/metrics")).status).toBe(200);
      expect(served).toBe(1);
    },
  );

  test("does not wait for a database that answers late, and does not pause after that", async () => {
    let nowMs = 0;
    const slept: number[] = [];
    const sleep = async (ms: number) => {
      slept.push(ms);
      nowMs += ms;
    };
    const queue = createRequestQueue({ monotonic: () => nowMs, sleep });
    await queue.enter();
    void queue.occupy(new Promise(() => {}), 250);
    await queue.enter();
    expect(slept).toEqual([250]);
    // The next request is a usual one.
    nowMs += 30;
    await queue.enter();
    expect(slept).toEqual([250, 30]);
  });

  test("runs one answer at a time that is cut into slices, even if one fails", async () => {
    let nowMs = 0;
    const slept: number[] = [];
    const clock = {
      monotonic: () => nowMs,
      sleep(ms: number) {
        slept.push(ms);
        return Promise.resolve();
      },
    };
    const queue = createRequestQueue(clock);
    const turns = { count: 0, areCounted: true };
    const countTurn = () => {
      turns.count++;
      if (turns.areCounted) setImmediate(countTurn);
    };
    setImmediate(countTurn);
    const order: string[] = [];
    function* steps(name: string, count: number) {
      for (let step = 0; step < count; step++) {
        nowMs += 2;
        order.push(name);
        yield;
      }
      if (count === 1) throw new Error("a defect");
      return name;
    }
    const answer = async (name: string, count: number) => {
      await queue.enter();
      return queue.occupy(runInSlices(steps(name, count), clock));
    };
    const answers = await Promise.allSettled([answer("a", 3), answer("b", 1), answer("c", 2)]);
    turns.areCounted = false;
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(order).toEqual(["a", "a", "a", "b", "c", "c"]);
    expect(turns.count).toBeGreaterThanOrEqual(6);
    await queue.enter();
    expect(slept).toEqual([6, 2, 4]);
  });
});
