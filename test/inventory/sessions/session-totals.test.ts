import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SESSION_STATUSES, SESSION_TYPES, type SessionRecord } from "../../../src/model/session.ts";
import { createWalks, session } from "./session-walks.ts";

describe("bytes", () => {
  test("of a session seen for the first time do not count if it may have moved them earlier", () => {
    const { walk, bytes } = createWalks();
    walk(1_000, [session("a")]);
    walk(2_000, [session("a"), session("old", { startedAtMs: 500 })]);
    expect(bytes()).toEqual([0, 0]);
  });

  test("of a session seen for the first time count if it started after the last walk", () => {
    const { walk, bytes } = createWalks();
    walk(1_000, [session("a")]);
    walk(2_000, [session("a"), session("b", { startedAtMs: 1_500 })]);
    expect(bytes()).toEqual([100, 200]);
  });

  test("are added as counters increase; a counter that falls changes nothing", () => {
    const { walk, bytes } = createWalks();
    walk(1_000, [session("a")]);
    walk(2_000, [session("a", { bytesSent: 150, bytesReceived: 260 })]);
    expect(bytes()).toEqual([50, 60]);
    walk(3_000, [session("a", { bytesSent: 10, bytesReceived: 270 })]);
    expect(bytes()).toEqual([50, 70]);
    walk(4_000, [session("a", { bytesSent: 15, bytesReceived: null })]);
    expect(bytes()).toEqual([55, 70]);
  });

  test("of a cut walk count, unlike its sessions", () => {
    const { walk, bytes, count } = createWalks();
    walk(1_000, [session("a"), session("b")]);
    walk(2_000, [session("a", { bytesSent: 150 })], "cut");
    expect(bytes()).toEqual([50, 0]);
    expect(count("active")).toBe(2);
  });

  test("of a node never decrease, whatever the list shows", () => {
    const steps = fc.array(
      fc.array(
        fc.record({
          id: fc.constantFrom("a", "b", "c", "d"),
          nodeId: fc.constantFrom("node_1", "node_2"),
          bytesSent: fc.option(fc.nat(1_000)),
          startedAtMs: fc.option(fc.nat(10_000)),
          status: fc.constantFrom(...SESSION_STATUSES),
        }),
      ),
      { maxLength: 15 },
    );
    fc.assert(
      fc.property(
        steps,
        fc.infiniteStream(fc.constantFrom("complete" as const, "incomplete" as const, "cut" as const)),
        (walks, ends) => {
          const { fold, walk } = createWalks();
          const last = new Map<string, number>();
          walks.forEach((sessions, index) => {
            walk(
              index * 1_000,
              sessions.map(({ id, ...parts }) => session(id, parts)),
              ends.next().value,
            );
            const nodes = fold.view()?.nodes;
            const present = new Set(nodes?.ids);
            for (const id of last.keys()) if (!present.has(id)) last.delete(id);
            nodes?.ids.forEach((id, slot) => {
              if (id === "") return;
              expect(nodes.sentBytes[slot]).toBeGreaterThanOrEqual(last.get(id) ?? 0);
              last.set(id, nodes.sentBytes[slot]!);
            });
          });
        },
      ),
    );
  });
});

test("bytes that were missing at first are unknown, not 0", () => {
  const { walk, bytes } = createWalks();
  walk(1_000, [session("a", { bytesSent: null })]);
  walk(2_000, [session("a", { bytesSent: 5_000_000_000 })]);
  expect(bytes()[0]).toBe(0);
  walk(3_000, [session("a", { bytesSent: 5_000_000_007 })]);
  expect(bytes()[0]).toBe(7);
});

test("walks that read nothing, however many, forget no session, byte or duration", () => {
  const { walk, bytes, ended } = createWalks();
  walk(1_000, [session("a"), session("b")]);
  for (let failed = 1; failed <= 30; failed++) walk(1_000 + failed * 60_000, [], "failed");
  walk(2_000_000, [session("a", { bytesSent: 1_100 })], "incomplete");
  for (let complete = 1; complete <= 2; complete++) {
    walk(2_000_000 + complete * 60_000, [session("a", { bytesSent: 1_100 })]);
  }
  expect(bytes()).toEqual([1_000, 0]);
  expect(ended()).toBe(1);
});

test("incomplete walks keep only the sessions of the last twenty walks", () => {
  const { walk, fold } = createWalks();
  for (let round = 0; round < 200; round++) {
    const sessions = Array.from({ length: 100 }, (_, index) =>
      session(`${round}-${index}`, { nodeId: `node_${round}` }),
    );
    walk(round * 1_000, sessions, round % 2 === 0 ? "incomplete" : "cut");
  }
  expect(fold.size()).toBeLessThanOrEqual(2_200);
});

describe("sessions that ended", () => {
  test("are observed once, with the last duration, after two complete walks without them", () => {
    const { walk, ended, fold } = createWalks();
    walk(1_000, [session("a", { durationSeconds: 10 })]);
    walk(2_000, [session("a", { durationSeconds: 70 })]);
    walk(3_000, []);
    expect(ended()).toBe(0);
    walk(4_000, []);
    expect(ended()).toBe(1);
    expect(fold.view()!.durations[SESSION_TYPES.indexOf("http")]).toMatchObject({ count: 1, sum: 70 });
    expect([...fold.view()!.durations[SESSION_TYPES.indexOf("http")]!.counts]).toEqual([
      0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1,
    ]);
    walk(5_000, []);
    expect(ended()).toBe(1);
    expect(fold.size()).toBe(0);
  });

  test("and are still listed are observed when they end, and not again when they leave the list", () => {
    const { walk, ended } = createWalks();
    walk(1_000, [session("a")]);
    walk(2_000, [session("a", { status: "closed" })]);
    expect(ended()).toBe(1);
    walk(3_000, [session("a", { status: "closed" })]);
    walk(4_000, []);
    walk(5_000, []);
    expect(ended()).toBe(1);
  });

  test("are not observed without a duration; one reported once counts even if it is missing later", () => {
    const { walk, ended, fold } = createWalks();
    walk(1_000, [session("a", { durationSeconds: null }), session("b"), session("c", { durationSeconds: null })]);
    walk(2_000, [
      session("a", { durationSeconds: null, status: "closed" }),
      session("b", { durationSeconds: null, status: "closed" }),
    ]);
    walk(3_000, []);
    walk(4_000, []);
    expect(ended()).toBe(1);
    expect(fold.view()!.durations[SESSION_TYPES.indexOf("http")]).toMatchObject({ count: 1, sum: 10 });
  });

  test("before the first walk are not observed", () => {
    const { walk, ended } = createWalks();
    walk(1_000, [session("a", { status: "closed" })]);
    expect(ended()).toBe(0);
  });
});

test("a session shown again in one walk, by a page that may be older, changes nothing", () => {
  const { walk, bytes, count, ended } = createWalks();
  walk(0, [session("s", { bytesSent: 100 })]);
  walk(10, [session("s", { bytesSent: 150 }), session("s", { bytesSent: 120, status: "closed" })]);
  walk(20, [session("s", { bytesSent: 160 })]);
  expect(bytes()[0]).toBe(60);
  expect([count("active"), ended()]).toEqual([1, 0]);
});

test("the bytes and duration of an older record, for example from a cache, are ignored", () => {
  const { walk, bytes, fold } = createWalks();
  const record = (seconds: number, parts: Partial<SessionRecord> = {}) =>
    session("a", { durationSeconds: seconds, bytesSent: 100 * seconds, ...parts });
  walk(0, [record(10)]);
  for (let seconds = 20; seconds <= 50; seconds += 10) {
    walk(seconds * 1_000, [record(seconds)]);
    walk(seconds * 1_000 + 1, [record(seconds - 5)]);
  }
  expect(bytes()[0]).toBe(4_000);
  walk(60_000, []);
  walk(70_000, []);
  expect(fold.view()!.durations.reduce((total, { sum }) => total + sum, 0)).toBe(50);
});

test("the last record of a session is not an older one, even if it states a shorter duration", () => {
  const { walk, bytes, fold } = createWalks();
  walk(0, [session("a", { durationSeconds: 90 })]);
  walk(60_000, [session("a", { durationSeconds: 80, bytesSent: 107, status: "timeout" })]);
  expect(bytes()[0]).toBe(7);
  expect(fold.view()!.durations.reduce((total, { sum }) => total + sum, 0)).toBe(80);
});

test("a record with more bytes is not an older one, even if it states a shorter duration", () => {
  const { walk, bytes } = createWalks();
  walk(0, [session("a", { durationSeconds: 90 })]);
  walk(60_000, [session("a", { durationSeconds: 80, bytesSent: 150 })]);
  walk(120_000, [session("a", { durationSeconds: 80, bytesSent: 170, bytesReceived: 300 })]);
  expect(bytes()).toEqual([70, 100]);
});

test("the bytes of a session count although a record without bytes stated a longer duration", () => {
  const { walk, bytes } = createWalks();
  walk(0, [session("a", { durationSeconds: 90, bytesSent: null, bytesReceived: null })]);
  walk(60_000, [session("a", { durationSeconds: 70 })]);
  walk(120_000, [session("a", { durationSeconds: 80, bytesSent: 150 })]);
  expect(bytes()).toEqual([50, 0]);
});

test("a session shown twice in one walk counts once", () => {
  const { walk, count } = createWalks();
  expect(walk(1_000, [session("a"), session("b"), session("a")])).toBe(2);
  expect(count("active")).toBe(2);
});

test("the number of failures is unknown until the list has shown one, also across a restart", () => {
  const { walk, fold } = createWalks();
  walk(1_000, [session("a")]);
  expect(fold.view()!.failedListed).toBe(false);
  walk(2_000, [session("a", { status: "timeout" })]);
  walk(3_000, []);
  expect(fold.view()!.failedListed).toBe(true);
  const later = createWalks(true);
  later.walk(1_000, []);
  expect(later.fold.view()!.failedListed).toBe(true);
});

test("a node that has left the fleet is left out until a later walk shows sessions of it", () => {
  const { fold, walk } = createWalks();
  const [old, other] = [session("s1"), session("s2", { nodeId: "node_2" })];
  const nodes = () => fold.view()!.nodes.ids.filter((id) => id !== "");
  walk(0, [old, other]);
  const before = fold.view()!;
  fold.forgetNode("node_1");
  expect(nodes()).toEqual(["node_2"]);
  walk(60_000, [], "failed");
  expect(nodes()).toEqual(["node_2"]);
  walk(120_000, [other]);
  expect(nodes()).toEqual(["node_2"]);
  walk(180_000, [old, other]);
  expect(nodes().toSorted()).toEqual(["node_1", "node_2"]);
  expect(before.nodes.ids).toEqual(["node_1", "node_2"]);
});

test("customers are ranked by sessions, then by name", () => {
  const { walk, fold } = createWalks();
  const of = (customerId: string, ...ids: string[]) => ids.map((id) => session(id, { customerId }));
  walk(1_000, [...of("c", "1"), ...of("b", "2", "3"), ...of("a", "4")]);
  expect(fold.view()!.customers.map(({ customerId, sessions }) => `${customerId} ${sessions}`)).toEqual([
    "b 2",
    "a 1",
    "c 1",
  ]);
});

describe("a walk that is not complete", () => {
  test("is published as incomplete if the list was read to its end", () => {
    const { walk, fold, count } = createWalks();
    walk(1_000, [session("a"), session("b")], "incomplete");
    expect(fold.view()).toMatchObject({ complete: false });
    expect(count("active")).toBe(2);
  });

  test("that was cut replaces older counts only after three in a row", () => {
    const { walk, count } = createWalks();
    walk(1_000, [session("a"), session("b")]);
    walk(2_000, [session("a")], "cut");
    walk(3_000, [session("a")], "cut");
    expect(count("active")).toBe(2);
    walk(4_000, [session("a")], "cut");
    expect(count("active")).toBe(1);
  });

  test("that read nothing never replaces older counts", () => {
    const { walk, fold } = createWalks();
    walk(1_000, [session("a")]);
    const { settledAt } = fold.view()!;
    for (let round = 2; round < 12; round++) walk(round * 1_000, [], "failed");
    expect(fold.view()!.settledAt).toBe(settledAt);
  });

  test("does not end sessions", () => {
    const { walk, ended } = createWalks();
    walk(1_000, [session("a"), session("b")]);
    for (const at of [2_000, 3_000, 4_000]) walk(at, [session("a")], "incomplete");
    expect(ended()).toBe(0);
  });
});

test("a walk ends in many steps if there are many customers", () => {
  const CUSTOMERS = 20_000;
  const CUSTOMERS_PER_STEP_MAX = 1_000;
  const { fold, walk } = createWalks();
  walk(1_000, [session("a")]);
  fold.beginWalk(2_000);
  for (let index = 0; index < CUSTOMERS; index++) fold.add(session(`s${index}`, { customerId: `cust_${index}` }));
  // Each customer is counted, and then ranked.
  expect([...fold.endWalk("complete", 2)].length).toBeGreaterThan((2 * CUSTOMERS) / CUSTOMERS_PER_STEP_MAX);
  expect(fold.view()!.customers).toHaveLength(CUSTOMERS);
});
