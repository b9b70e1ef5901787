import fc from "fast-check";
import { expect, test } from "vitest";
import type { RecordProblem } from "../../../src/api-client/decoding/fields.ts";
import {
  decodeNodeDetail,
  decodeNodeRecord,
  decodePage,
  decodeSessionRecord,
} from "../../../src/api-client/decoding/records.ts";
import { decodeHourly, decodeStatistics } from "../../../src/api-client/decoding/statistics.ts";
import { missingFields } from "../../inventory/inventory-fixtures.ts";

const node = {
  id: "node_1",
  name: "de-fra-1",
  status: "online",
  country: "DE",
  region: "eu-central",
  ip_address: "203.0.113.7",
  version: "2.4.1",
  last_seen: "2026-03-01T00:00:00Z",
  uptime_hours: 12,
  active_sessions: 3,
  bandwidth_gb: 1.5,
};

function problemsOf(read: (json: unknown, onProblem: (problem: RecordProblem) => void) => unknown, json: unknown) {
  const problems: RecordProblem[] = [];
  const record = read(json, (problem) => problems.push(problem));
  return { record, problems };
}

test("decodes all fields of a listed node", () => {
  const { record, problems } = problemsOf(decodeNodeRecord, node);
  expect(problems).toEqual([]);
  expect(record).toEqual({
    ...missingFields,
    id: "node_1",
    name: "de-fra-1",
    status: "online",
    country: "DE",
    region: "eu-central",
    ipAddress: "203.0.113.7",
    version: "2.4.1",
    lastSeenMs: Date.UTC(2026, 2, 1),
    uptimeHours: 12,
    activeSessions: 3,
    bandwidthGb: 1.5,
  });
});

test("fields that are absent or null are missing, unknown fields are ignored", () => {
  const { record, problems } = problemsOf(decodeNodeRecord, { id: "n", status: "offline", name: null, colour: "red" });
  expect(problems).toEqual([]);
  expect(record).toMatchObject({ id: "n", status: "offline", name: null, lastSeenMs: null, uptimeHours: null });
});

const UNICODE = "a string of 1 to 256 characters of valid Unicode";

test.each([
  [42, "not_an_object", "found 42; a record is an object"],
  [{ ...node, id: "" }, "missing_id", `id is ""; it must be ${UNICODE}`],
  [{ ...node, id: undefined }, "missing_id", `id is missing; it must be ${UNICODE}`],
  [{ ...node, id: "node_\ud800" }, "missing_id", `id is "node_\\ud800"; it must be ${UNICODE}`],
  [{ ...node, id: "node_\ufffd" }, "missing_id", `id is "node_\ufffd"; it must be ${UNICODE}`],
])("%o is skipped, with a problem about what was found and what is valid", (json, reason, detail) => {
  const { record, problems } = problemsOf(decodeNodeRecord, json);
  expect(record).toBeNull();
  expect(problems).toMatchObject([{ reason, detail }]);
});

const NUMBER = "it must be a number from 0 to 9007199254740991";

test.each([
  ["uptime_hours", "12", "uptimeHours", "wrong_type", `uptime_hours is "12"; ${NUMBER}`],
  ["uptime_hours", -1, "uptimeHours", "wrong_type", `uptime_hours is -1; ${NUMBER}`],
  ["bandwidth_gb", 1e21, "bandwidthGb", "wrong_type", `bandwidth_gb is 1e+21; ${NUMBER}`],
  [
    "name",
    ["x"],
    "name",
    "wrong_type",
    'name is ["x"]; it must be a string of at most 256 characters of valid Unicode',
  ],
  [
    "region",
    "eu\ud800",
    "region",
    "wrong_type",
    'region is "eu\\ud800"; it must be a string of at most 256 characters of valid Unicode',
  ],
  ["last_seen", "yesterday", "lastSeenMs", "bad_time", 'last_seen is "yesterday"; it must be an ISO 8601 timestamp'],
  ["last_seen", "", "lastSeenMs", "bad_time", 'last_seen is ""; it must be an ISO 8601 timestamp'],
])("%s of %o makes only that field unknown, with a problem", (field, value, key, reason, detail) => {
  for (const read of [decodeNodeRecord, decodeNodeDetail]) {
    const { record, problems } = problemsOf(read, { ...node, [field]: value });
    expect(record).toEqual({ ...(read(node, () => {}) as object), [key]: null });
    expect(problems).toEqual([{ reason, id: "node_1", detail }]);
  }
});

test("a record with several invalid fields causes one problem, which counts the others", () => {
  const { record, problems } = problemsOf(decodeNodeRecord, { ...node, last_seen: "", uptime_hours: -1, version: 3 });
  expect(record).toMatchObject({ status: "online", lastSeenMs: null, uptimeHours: null, version: null });
  expect(problems).toMatchObject([
    { reason: "wrong_type", detail: expect.stringMatching(/^version is 3;.*; other invalid fields: 2$/) },
  ]);
});

test("a session with invalid fields keeps its status, without invalid ids of customer and node", () => {
  const unusualRecord = { customer_id: "cust_\udc00", node_id: "node_\ufffd", duration_seconds: -1, country: "DE" };
  const { record, problems } = problemsOf(decodeSessionRecord, {
    id: "s",
    status: "active",
    session_type: "http",
    ...unusualRecord,
  });
  expect(record).toMatchObject({ status: "active", customerId: null, nodeId: null, durationSeconds: null });
  expect(record).toMatchObject({ country: "DE" });
  expect(problems).toHaveLength(1);
});

test("an empty id of a customer or a node is missing", () => {
  const session = { id: "s", status: "active", session_type: "http", customer_id: "", node_id: "" };
  const { record, problems } = problemsOf(decodeSessionRecord, session);
  expect(record).toMatchObject({ customerId: null, nodeId: null });
  expect(problems).toEqual([]);
});

test("an unknown status becomes unknown, with a problem that lists the known ones", () => {
  const { record, problems } = problemsOf(decodeNodeRecord, { ...node, status: "hibernating" });
  expect(record).toMatchObject({ status: "unknown" });
  expect(problems).toMatchObject([{ reason: "unknown_status", id: "node_1" }]);
  expect(problems[0]!.detail).toContain("known values: online, offline, quarantined, rebooting, maintenance");
});

test('"unknown" is not a known status of the service', () => {
  expect(problemsOf(decodeNodeRecord, { ...node, status: "unknown" }).problems).toMatchObject([
    { reason: "unknown_status" },
  ]);
});

test("a timestamp without a zone is UTC, wherever the daemon runs", () => {
  const { record } = problemsOf(decodeNodeRecord, { ...node, last_seen: "2026-03-01T00:00:00" });
  expect(record).toMatchObject({ lastSeenMs: Date.UTC(2026, 2, 1) });
});

test("a detail has usages as stated, whatever their scale", () => {
  const detail = { ...node, cpu_usage: 45.2, memory_usage: 0.5, disk_usage: null, created_at: "2026-01-01T00:00:00Z" };
  const { record } = problemsOf(decodeNodeDetail, detail);
  expect(record).toMatchObject({ cpuUsage: 45.2, memoryUsage: 0.5, diskUsage: null, updatedAtMs: null });
});

test("a session type that is not known becomes unknown, with a problem", () => {
  const { record, problems } = problemsOf(decodeSessionRecord, {
    id: "sess_1",
    status: "active",
    session_type: "quic",
  });
  expect(record).toMatchObject({ id: "sess_1", type: "unknown", status: "active" });
  expect(problems).toMatchObject([{ reason: "unknown_type" }]);
});

test("no JSON makes a decoder throw, and each skipped record causes a problem", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      for (const read of [decodeNodeRecord, decodeNodeDetail, decodeSessionRecord]) {
        const { record, problems } = problemsOf(read, json);
        expect(record !== null || problems.length > 0).toBe(true);
      }
      expect(typeof decodePage(json).ok).toBe("boolean");
      for (const read of [decodeStatistics, decodeHourly]) expect(typeof read(json, () => {}).ok).toBe("boolean");
    }),
  );
});

test("a value that is nested deeper than the stack is rejected like any other", () => {
  const deep: unknown = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`);
  const details: string[] = [];
  const note = ({ detail }: RecordProblem) => void details.push(detail);
  expect(decodeNodeRecord(deep, note)).toBeNull();
  expect(decodeNodeRecord({ id: "node_1", status: "online", name: deep }, note)?.name).toBeNull();
  expect(decodeStatistics({ active_sessions: 1, top_countries: [deep] }, note)).toMatchObject({ ok: true });
  expect(decodeHourly({ data: [deep] }, note)).toEqual({ ok: true, value: [] });
  expect(details).toHaveLength(4);
  expect(details[0]).toBe("found a list that is nested too deeply to be shown; a record is an object");
});

test("a page without a total is an error that names the field", () => {
  const page = decodePage({ data: [], pagination: { page: 1, limit: 10 } });
  expect(page.ok ? "" : page.error.message).toContain("this is not a page: pagination.total");
});

test("a page with too many records is an error", () => {
  const page = (records: number) => ({ data: new Array(records).fill(node), pagination: { total: records } });
  expect(decodePage(page(50_000))).toMatchObject({ ok: true });
  const refused = decodePage(page(50_001));
  expect(refused).toMatchObject({ ok: false, error: { kind: "wrong_shape" } });
  expect(!refused.ok && refused.error.message).toBe("this is not a page: data: it has more than 50000 records");
  const unusualRecord = { data: { length: { toString: 1 } }, pagination: { total: 1 } };
  expect(decodePage(unusualRecord)).toMatchObject({ ok: false, error: { kind: "wrong_shape" } });
});

test("a page may state an invalid limit", () => {
  const page = decodePage({ data: [1], pagination: { page: 1, limit: "50", total: 1 } });
  expect(page).toEqual({ ok: true, value: { records: [1], limit: null, total: 1 } });
});

test("null in place of an empty list is an empty page", () => {
  const page = decodePage({ data: null, pagination: { page: 2, limit: 50, total: 50 } });
  expect(page).toEqual({ ok: true, value: { records: [], limit: 50, total: 50 } });
  expect(decodePage({ pagination: { total: 50 } })).toMatchObject({ ok: false, error: { kind: "wrong_shape" } });
});

test("an invalid field of the statistics is null and does not affect others", () => {
  const problems: RecordProblem[] = [];
  const stats = decodeStatistics(
    { active_sessions: 7, average_session_duration_seconds: -1, top_countries: "none" },
    (problem) => problems.push(problem),
  );
  expect(stats).toMatchObject({
    ok: true,
    value: { activeSessions: 7, averageDurationSeconds: null, topCountries: [] },
  });
  expect(problems).toMatchObject([{ reason: "wrong_type", id: null }]);
});

test("statistics without a readable field are an error", () => {
  expect(decodeStatistics({ active_sessions: "7" }, () => {}).ok).toBe(false);
  expect(decodeStatistics([], () => {}).ok).toBe(false);
});

test("an invalid number of an hour is null and does not affect others", () => {
  const hour = { hour: "2026-03-01T01:00:00Z", active_sessions: 4, bandwidth_gb: -1 };
  const hours = decodeHourly({ data: [hour] }, () => {});
  expect(hours).toMatchObject({ ok: true, value: [{ activeSessions: 4, bandwidthGb: null }] });
});

test("hours are sorted by time, without unreadable ones", () => {
  const hours = decodeHourly(
    {
      data: [{ hour: "2026-03-01T02:00:00Z" }, "odd", { hour: "2026-03-01T01:00:00Z", new_sessions: 4 }],
    },
    () => {},
  );
  expect(hours.ok && hours.value.map(({ hourMs, newSessions }) => [hourMs, newSessions])).toEqual([
    [Date.UTC(2026, 2, 1, 1), 4],
    [Date.UTC(2026, 2, 1, 2), null],
  ]);
});

test("of more hours than are kept, the newest stay, whatever their order", () => {
  const data = Array.from({ length: 400 }, (_, hour) => ({ hour: new Date(hour * 3_600_000).toISOString() }));
  for (const hours of [decodeHourly({ data }, () => {}), decodeHourly({ data: data.toReversed() }, () => {})]) {
    expect(hours.ok && [hours.value.length, hours.value.at(-1)!.hourMs]).toEqual([300, 399 * 3_600_000]);
  }
});

test("invalid entries of a top list are omitted", () => {
  const unusualRecord = [
    { country: null, sessions: 1 },
    { country: "x".repeat(300), sessions: 1 },
    { country: "DE", sessions: -1 },
    { country: "ES", sessions: null },
    { country: "IT" },
  ];
  const problems: RecordProblem[] = [];
  const stats = decodeStatistics({ top_countries: [...unusualRecord, { country: "FR", sessions: 2 }] }, (problem) =>
    problems.push(problem),
  );
  expect(problems.map(({ reason }) => reason)).toEqual(unusualRecord.map(() => "wrong_type"));
  expect(stats).toMatchObject({ ok: true, value: { topCountries: [["FR", 2]] } });
});
