import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../../src/base/duration.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createTestClient, json, START, scenarioWith } from "../api-caller.ts";

const LIST_NODE = [
  ...["id", "name", "status", "country", "region", "ip_address", "version", "last_seen", "uptime_hours"],
  ...["active_sessions", "bandwidth_gb"],
];
const LIST_SESSION = [
  ...["id", "customer_id", "node_id", "status", "started_at", "duration_seconds", "bytes_sent", "bytes_received"],
  ...["target_host", "target_port", "country", "session_type"],
];
const ISO_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

describe("the list and detail forms have exactly the fields of the spec", () => {
  const client = createTestClient(scenarioWith());
  const node = json(client.get("/v1/nodes?limit=1")).data[0];
  const session = json(client.get("/v1/sessions?limit=1")).data[0];

  test("of a node", () => {
    expect(Object.keys(node)).toEqual(LIST_NODE);
    const detail = json(client.get(`/v1/nodes/${node.id}`));
    const more = ["cpu_usage", "memory_usage", "disk_usage", "created_at", "updated_at"];
    expect(Object.keys(detail)).toEqual([...LIST_NODE, ...more]);
    expect(detail).toMatchObject(node);
    expect(detail.id).toMatch(/^node_/);
    expect(detail.country).toMatch(/^[A-Z]{2}$/);
    for (const time of [detail.last_seen, detail.created_at, detail.updated_at]) expect(time).toMatch(ISO_UTC);
    for (const count of [detail.uptime_hours, detail.active_sessions]) expect(count).toSatisfy(Number.isInteger);
    for (const usage of [detail.cpu_usage, detail.memory_usage, detail.disk_usage]) {
      expect(usage).toBeGreaterThan(0);
      expect(usage).toBeLessThan(1);
    }
  });

  test("of a session", () => {
    expect(Object.keys(session)).toEqual(LIST_SESSION);
    const detail = json(client.get(`/v1/sessions/${session.id}`));
    const more = ["protocol", "user_agent", "client_ip", "error_count", "last_activity"];
    expect(Object.keys(detail)).toEqual([...LIST_SESSION, ...more]);
    expect(detail).toMatchObject(session);
    expect([detail.id.slice(0, 5), detail.customer_id.slice(0, 5)]).toEqual(["sess_", "cust_"]);
    for (const time of [detail.started_at, detail.last_activity]) expect(time).toMatch(ISO_UTC);
    expect(json(client.get(`/v1/nodes/${detail.node_id}`)).country).toBe(detail.country);
  });
});

test("reports usage as a ratio or a percentage, depending on usageScale", () => {
  const [ratio, percent] = (["ratio", "percent"] as const).map((usageScale) => {
    const client = createTestClient(scenarioWith({}, { usageScale }));
    return json(client.get(`/v1/nodes/${json(client.get("/v1/nodes")).data[3].id}`));
  });
  expect(percent.cpu_usage).toBeCloseTo(ratio.cpu_usage * 100, 1);
  expect(percent.disk_usage).toBeGreaterThan(1);
});

test("states the uptime of a detail as the option says, and created_at with each boot if it is to", () => {
  const detailOf = (options: Parameters<typeof scenarioWith>[1]) => {
    const client = createTestClient(scenarioWith({}, options));
    return json(client.get(`/v1/nodes/${json(client.get("/v1/nodes")).data[3].id}`));
  };
  const [{ uptime_hours: floored, created_at: createdAt }, rounded, exact] = (
    ["floored", "rounded", "exact"] as const
  ).map((detailUptime) => detailOf({ detailUptime }));
  expect([Math.floor(exact.uptime_hours), Math.round(exact.uptime_hours)]).toEqual([floored, rounded.uptime_hours]);
  const bootAt = Date.parse(detailOf({ createdAt: "boot" }).created_at);
  expect(bootAt).toBeGreaterThan(Date.parse(createdAt));
  expect(Math.floor((START - bootAt) / 3_600_000)).toBe(floored);
});

test("states the location of a detail in another case if it is to", () => {
  const client = createTestClient(scenarioWith({}, { detailLocation: "other_case" }));
  const { id, country, region } = json(client.get("/v1/nodes")).data[3];
  const detail = json(client.get(`/v1/nodes/${id}`));
  expect([detail.country, detail.region]).toEqual([country.toLowerCase(), region.toUpperCase()]);
});

test("ends a quarantine after its duration, or never, as the option says", () => {
  const statusAfterAnHour = (quarantineEnd: "duration" | "never") => {
    const client = createTestClient(scenarioWith({}, { quarantineEnd }));
    const { id } = json(client.get("/v1/nodes")).data[3];
    client.post(`/v1/nodes/${id}/quarantine`, { reason: "test", duration_minutes: 30 });
    client.now += HOUR_MS;
    return json(client.get(`/v1/nodes/${id}`)).status;
  };
  expect(statusAfterAnHour("duration")).toBe("online");
  expect(statusAfterAnHour("never")).toBe("quarantined");
});

test("lists and returns a rebooting node with the status that the option says", () => {
  const statusOf = (rebootStatus: "rebooting" | "offline" | "online") => {
    const client = createTestClient(scenarioWith({}, { rebootStatus }));
    const { id } = json(client.get("/v1/nodes")).data[3];
    client.post(`/v1/nodes/${id}/reboot`, { force: true });
    return [json(client.get("/v1/nodes")).data[3].status, json(client.get(`/v1/nodes/${id}`)).status];
  };
  expect(statusOf("rebooting")).toEqual(["rebooting", "rebooting"]);
  expect(statusOf("offline")).toEqual(["offline", "offline"]);
  expect(statusOf("online")).toEqual(["online", "online"]);
});

test("lists and returns a node with the status that the option says for a minute after it has booted", () => {
  const statusesOf = (bootedStatus: "online" | "starting") => {
    const client = createTestClient(scenarioWith({}, { bootedStatus }));
    const { id } = json(client.get("/v1/nodes")).data[3];
    const status = () => [json(client.get("/v1/nodes")).data[3].status, json(client.get(`/v1/nodes/${id}`)).status];
    client.post(`/v1/nodes/${id}/reboot`, { force: true });
    client.now += 121_000;
    const booted = status();
    client.now += 60_000;
    return [...booted, ...status()];
  };
  expect(statusesOf("online")).toEqual(["online", "online", "online", "online"]);
  expect(statusesOf("starting")).toEqual(["starting", "starting", "online", "online"]);
});

test("states the uptime and usage of a node that is offline as the option says", () => {
  const valuesOf = (offlineValues: "last" | "zero" | "null") => {
    const client = createTestClient(scenarioWith({}, { offlineValues, rebootStatus: "offline" }));
    const { id, uptime_hours: before } = json(client.get("/v1/nodes")).data[3];
    client.post(`/v1/nodes/${id}/reboot`, { force: true });
    const { uptime_hours: listed } = json(client.get("/v1/nodes")).data[3];
    const { uptime_hours: detailed, cpu_usage: cpu } = json(client.get(`/v1/nodes/${id}`));
    return { before, listed, detailed, cpu };
  };
  const { before, listed, detailed, cpu } = valuesOf("last");
  expect([before, listed, detailed]).toEqual([before, before, before]);
  expect(cpu).toBeGreaterThan(0);
  expect(valuesOf("zero")).toEqual({ before, listed: 0, detailed: 0, cpu: 0 });
  expect(valuesOf("null")).toEqual({ before, listed: null, detailed: null, cpu: null });
});

test("lists and returns a quarantined node with the status that the option says", () => {
  const statusOf = (quarantineStatus: "quarantined" | "maintenance" | "offline") => {
    const client = createTestClient(scenarioWith({}, { quarantineStatus }));
    const { id } = json(client.get("/v1/nodes")).data[3];
    client.post(`/v1/nodes/${id}/quarantine`, { reason: "test", duration_minutes: 30 });
    return [json(client.get("/v1/nodes")).data[3].status, json(client.get(`/v1/nodes/${id}`)).status];
  };
  expect(statusOf("quarantined")).toEqual(["quarantined", "quarantined"]);
  expect(statusOf("maintenance")).toEqual(["maintenance", "maintenance"]);
  expect(statusOf("offline")).toEqual(["offline", "offline"]);
});

describe("pagination", () => {
  test.each([0, 1] as const)("lists every node once, in order, with pages from %d", (firstPage) => {
    const client = createTestClient(scenarioWith({ nodes: 45 }, { firstPage }));
    const pages = [0, 1, 2, 3, 4].map((page) => json(client.get(`/v1/nodes?page=${page + firstPage}&limit=10`)));
    const ids = pages.flatMap(({ data }) => data.map(({ id }: { id: string }) => id));
    expect(pages.map(({ data }) => data.length)).toEqual([10, 10, 10, 10, 5]);
    expect(ids).toEqual([...client.service.network.fleet.nodes].map(({ id }) => id));
    expect(pages[4].pagination).toEqual({ page: 4 + firstPage, limit: 10, total: 45 });
    const beyond = json(client.get("/v1/nodes?page=99&limit=10"));
    expect(beyond).toEqual({ data: [], pagination: { page: 99, limit: 10, total: 45 } });
  });

  test("lists every session once, and with a filter those of the status", () => {
    const client = createTestClient(scenarioWith({ sessions: 4_000 }, { listEndedSessions: true }));
    client.now += 20 * 60_000;
    const walk = (filter: string): { id: string; status: string }[] => {
      const pages = [];
      for (let page = 1; page <= 10; page += 1)
        pages.push(json(client.get(`/v1/sessions?limit=700&page=${page}${filter}`)));
      const rows = pages.flatMap(({ data }) => data);
      expect(rows).toHaveLength(pages[0].pagination.total);
      return rows;
    };
    const all = walk("");
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    const statuses = ["active", "connecting", "closed", "error", "timeout"];
    const filtered = statuses.map((status) => walk(`&status=${status}`));
    filtered.forEach((rows, index) => {
      expect(new Set(rows.map(({ status }) => status))).toEqual(new Set([statuses[index]]));
    });
    expect(
      filtered
        .flat()
        .map(({ id }) => id)
        .sort(),
    ).toEqual(all.map(({ id }) => id).sort());
  });

  test("clamps or rejects a limit over the maximum, depending on the options", () => {
    const echoed = (pageLimitEcho: "effective" | "requested") => {
      const client = createTestClient(scenarioWith({}, { pageLimitMax: 15, pageLimitEcho }));
      const { data, pagination } = json(client.get("/v1/nodes?limit=100"));
      return [data.length, pagination.limit];
    };
    expect([echoed("effective"), echoed("requested")]).toEqual([
      [15, 15],
      [15, 100],
    ]);
    const client = createTestClient(scenarioWith({}, { pageLimitMax: 15, pageLimitOver: "reject" }));
    const rejected = client.get("/v1/nodes?limit=16");
    expect([rejected.status, json(rejected).message]).toEqual([400, 'limit must be an integer from 1 to 15, not "16"']);
    expect(json(createTestClient(scenarioWith({}, { pageLimitDefault: 7 })).get("/v1/nodes")).data).toHaveLength(7);
  });

  test.each(["page=0", "page=x", "page=-1", "page=1.5", "limit=0", "limit=", "limit=1e3"])("rejects %s", (query) => {
    expect(createTestClient(scenarioWith()).get(`/v1/nodes?${query}`).status).toBe(400);
  });
});

test("keeps ended sessions readable by ID for some minutes, and lists them with listEndedSessions", () => {
  for (const listEndedSessions of [true, false]) {
    const client = createTestClient(scenarioWith({}, { listEndedSessions }));
    const { id, node_id } = json(client.get("/v1/sessions?limit=1")).data[0];
    client.post(`/v1/nodes/${node_id}/disconnect`);
    const listed = json(client.get("/v1/sessions?limit=1000")).data.some(
      (session: { id: string }) => session.id === id,
    );
    expect([listed, json(client.get(`/v1/sessions/${id}`)).status]).toEqual([listEndedSessions, "closed"]);
    client.now += 10 * 60_000;
    expect(client.get(`/v1/sessions/${id}`).status).toBe(404);
  }
});

describe("rejected requests", () => {
  const key = { authorization: `Bearer ${SIMULATION_KEY}` };
  const reader = { key: "reader", scopes: ["nodes:read"] };
  const client = createTestClient(scenarioWith({ keys: [{ key: SIMULATION_KEY, scopes: ["nodes:write"] }, reader] }));
  const status = (path: string, headers: Record<string, string>) => client.get(path, headers).status;

  test("get 401 without a valid key and 403 without the scope", () => {
    expect(status("/v1/nodes", {})).toBe(401);
    expect(status("/v1/nodes", { authorization: "Bearer unknown" })).toBe(401);
    expect(status("/v1/nodes", { authorization: `Basic ${SIMULATION_KEY}` })).toBe(401);
    expect(status("/v1/nodes", key)).toBe(403);
    expect(status("/v1/sessions/stats", { authorization: "Bearer reader" })).toBe(403);
    expect(status("/v1/nodes", { authorization: "Bearer reader" })).toBe(200);
  });

  test("get 404 for an unknown path and 405 with the allowed methods for a wrong method", () => {
    const read = { authorization: "Bearer reader" };
    for (const path of ["/v1/nodes/node_00000000", "/v1/nodes/%zz", "/v1/nodez", "/nodes", "/", "/v1/nodes/a/b"]) {
      expect(status(path, read)).toBe(404);
    }
    const wrong = client.post("/v1/nodes");
    expect([wrong.status, wrong.headers.allow]).toEqual([405, "GET"]);
    expect(client.get("/v1/nodes/x/reboot").headers.allow).toBe("POST");
  });

  test.each([
    ["quarantine", undefined, "reason must be a string"],
    ["quarantine", { reason: "", duration_minutes: 5 }, "reason must be a string"],
    ["quarantine", { reason: "x", duration_minutes: 0 }, "duration_minutes must be an integer from 1"],
    ["quarantine", { reason: "x", duration_minutes: "5" }, "duration_minutes must be"],
    ["reboot", { force: "yes" }, "force must be true or false"],
    ["reboot", [], "must be a JSON object"],
  ])("get 400 with the valid values: %s with %j", (action, body, message) => {
    const { id } = client.service.network.fleet.nodes[0]!;
    const reply = client.post(`/v1/nodes/${id}/${action}`, body);
    expect(reply.status).toBe(400);
    expect(json(reply).message).toContain(message);
  });

  test("have an error body in the form of the option errorBody", () => {
    const bodyIn = (errorBody: "code" | "nested" | "text" | "empty") => {
      const { headers, body } = createTestClient(scenarioWith({}, { errorBody })).get("/v1/nodes?page=x");
      return [headers["content-type"], body];
    };
    const message = 'page must be an integer of at least 1, not "x"';
    expect(bodyIn("code")).toEqual(["application/json", JSON.stringify({ error: "invalid_page", message })]);
    expect(bodyIn("nested")).toEqual([
      "application/json",
      JSON.stringify({ error: { code: "invalid_page", message } }),
    ]);
    expect(bodyIn("text")).toEqual(["text/plain; charset=utf-8", message]);
    expect(bodyIn("empty")).toEqual([undefined, ""]);
  });
});

test("sets the Date header to the service's time", () => {
  const client = createTestClient(scenarioWith());
  expect(client.get("/v1/nodes").headers.date).toBe(new Date(START).toUTCString());
});
