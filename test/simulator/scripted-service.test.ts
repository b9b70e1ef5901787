import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { PolicyTest, ScriptedNode } from "../../src/config/schema/policy-test.ts";
import type { NodeStatus } from "../../src/model/node.ts";
import { type Series, valueAt } from "../../src/model/policy/series.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createScriptedTransport } from "../../src/simulator/scripted-service.ts";
import { orThrow } from "../harness/or-throw.ts";

const START = Date.parse("2026-03-01T12:00:00Z");
const always = <Value>(value: Value): Series<Value> => [{ value, forMs: Number.POSITIVE_INFINITY }];
const statuses = (...spans: readonly (readonly [NodeStatus, minutes: number])[]): Series<NodeStatus> =>
  spans.map(([value, minutes]) => ({ value, forMs: minutes * MINUTE_MS }));

const node = (overrides: Partial<ScriptedNode> = {}): ScriptedNode => ({
  id: "node_1",
  name: "a",
  country: "DE",
  region: "eu-central",
  version: "1.0.0",
  status: always("online"),
  lastSeen: null,
  uptimeHours: null,
  sessions: {},
  activeSessions: always(0),
  bandwidthGb: always(0),
  cpuUsage: always(0.5),
  memoryUsage: always(0.5),
  diskUsage: always(0.5),
  ...overrides,
});

/** Creates a service with these nodes. Returns a function that sends a request some minutes after the start. */
function serviceWith(...nodes: readonly ScriptedNode[]) {
  const test: PolicyTest = {
    name: "x",
    startsAt: START,
    intervalMs: MINUTE_MS,
    nodes,
    expectations: [],
    blocked: always(false),
  };
  const clock = createVirtualClock(START);
  const transport = createScriptedTransport(test, clock);
  return async (minutes: number, path: string, method: "GET" | "POST" = "GET") => {
    await clock.advance(minutes * MINUTE_MS - clock.monotonic());
    const pending = transport.request({ method, path, headers: {} }, new AbortController().signal);
    await clock.advance(50);
    const { status, headers, body } = orThrow(await pending);
    return { status, headers, json: JSON.parse(Buffer.from(body).toString("utf8")) };
  };
}

test("a series has the value of its span, and after the last span the last value", () => {
  const series = statuses(["online", 10], ["offline", 5], ["rebooting", Number.POSITIVE_INFINITY]);
  const at = [0, 9.99, 10, 14.99, 15, 1_000].map((minutes) => valueAt(series, minutes * MINUTE_MS));
  expect(at).toEqual(["online", "online", "offline", "offline", "rebooting", "rebooting"]);
});

test("last_seen advances while a node is online, and its uptime restarts after a reboot", async () => {
  const send = serviceWith(
    node({ status: statuses(["online", 10], ["offline", 20], ["rebooting", 5], ["online", 0]) }),
  );
  const observed = [];
  for (const minutes of [5, 29, 34, 36, 35 + 90]) {
    const [{ status, last_seen: lastSeen, uptime_hours: uptime }] = (await send(minutes, "/v1/nodes?page=1&limit=10"))
      .json.data;
    observed.push([status, lastSeen.slice(11, 19), uptime]);
  }
  expect(observed).toEqual([
    ["online", "12:05:00", 1_000],
    ["offline", "12:10:00", 1_000],
    ["rebooting", "12:10:00", 1_000],
    ["online", "12:36:00", 0],
    ["online", "14:05:00", 1],
  ]);
});

test("a frozen last_seen does not advance while the node is online", async () => {
  const frozen: ScriptedNode["lastSeen"] = [
    { value: "now", forMs: 2 * MINUTE_MS },
    { value: "frozen", forMs: Number.POSITIVE_INFINITY },
  ];
  const { json } = await serviceWith(node({ lastSeen: frozen }))(60, "/v1/nodes/node_1");
  expect(json).toMatchObject({ status: "online", last_seen: "2026-03-01T12:02:00.000Z", cpu_usage: 0.5 });
});

test("pages its lists, dates its answers, rejects unknown nodes, and accepts actions without an effect", async () => {
  const send = serviceWith(node(), node({ id: "node_2" }), node({ id: "node_3" }));
  const page = await send(HOUR_MS / MINUTE_MS, "/v1/nodes?page=2&limit=2");
  expect(page.json.data.map(({ id }: { id: string }) => id)).toEqual(["node_3"]);
  expect(page.json.pagination).toEqual({ page: 2, limit: 2, total: 3 });
  expect(page.headers.date).toBe("Sun, 01 Mar 2026 13:00:00 GMT");
  expect((await send(61, "/v1/nodes/node_9")).status).toBe(404);
  expect((await send(61, "/v1/nodes/node_1/reboot", "POST")).json).toEqual({ success: true });
  expect((await send(62, "/v1/nodes/node_1")).json).toMatchObject({ status: "online", uptime_hours: 1_001 });
});

test("open sessions keep their IDs from walk to walk, and ended sessions have new ones", async () => {
  const send = serviceWith(node({ sessions: { active: always(2), error: always(1) } }));
  const ids = async (minutes: number): Promise<readonly string[]> =>
    (await send(minutes, "/v1/sessions?page=1&limit=10")).json.data.map(
      ({ id, status }: Record<string, string>) => `${status} ${id}`,
    );
  const [first, second] = [await ids(1), await ids(2)];
  expect(first).toHaveLength(3);
  expect(first.filter((id) => second.includes(id)).map((id) => id.split(" ")[0])).toEqual(["active", "active"]);
});
