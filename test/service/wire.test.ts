import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Remark,
  readHours,
  readNodeDetail,
  readNodeRecord,
  readPage,
  readSessionRecord,
  readStatistics,
} from "../../src/service/wire.ts";

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

function remarksOf(read: (json: unknown, onRemark: (remark: Remark) => void) => unknown, json: unknown) {
  const remarks: Remark[] = [];
  const record = read(json, (remark) => remarks.push(remark));
  return { record, remarks };
}

test("a node of the list is read field by field", () => {
  const { record, remarks } = remarksOf(readNodeRecord, node);
  expect(remarks).toEqual([]);
  expect(record).toEqual({
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
  const { record, remarks } = remarksOf(readNodeRecord, { id: "n", status: "offline", name: null, colour: "red" });
  expect(remarks).toEqual([]);
  expect(record).toMatchObject({ id: "n", status: "offline", name: null, lastSeenMs: null, uptimeHours: null });
});

test.each([
  [42, "not_an_object", "found 42; a record is an object"],
  [{ ...node, id: "" }, "missing_id", 'id is ""; it is a text of 1 to 256 characters'],
  [{ ...node, id: undefined }, "missing_id", "id is missing; it is a text of 1 to 256 characters"],
  [{ ...node, uptime_hours: "12" }, "wrong_type", 'uptime_hours is "12"; it is a number from 0'],
  [{ ...node, bandwidth_gb: -1 }, "wrong_type", "bandwidth_gb is -1; it is a number from 0"],
  [{ ...node, name: ["x"] }, "wrong_type", 'name is ["x"]; it is a text of at most 256 characters'],
  [{ ...node, last_seen: "yesterday" }, "bad_time", 'last_seen is "yesterday"; it is an ISO 8601 timestamp'],
])("%o is skipped, and the remark says what was found and what would be right", (json, reason, detail) => {
  const { record, remarks } = remarksOf(readNodeRecord, json);
  expect(record).toBeNull();
  expect(remarks).toMatchObject([{ reason, detail }]);
});

test("an unknown status is taken as unknown, with a remark that lists the known ones", () => {
  const { record, remarks } = remarksOf(readNodeRecord, { ...node, status: "hibernating" });
  expect(record).toMatchObject({ status: "unknown" });
  expect(remarks).toMatchObject([{ reason: "unknown_status", id: "node_1" }]);
  expect(remarks[0]!.detail).toContain("known are online, offline, quarantined, rebooting, maintenance");
});

test("the model's own word for an unknown status is no status of the service", () => {
  expect(remarksOf(readNodeRecord, { ...node, status: "unknown" }).remarks).toMatchObject([
    { reason: "unknown_status" },
  ]);
});

test("a timestamp without a zone is UTC, wherever the daemon runs", () => {
  const { record } = remarksOf(readNodeRecord, { ...node, last_seen: "2026-03-01T00:00:00" });
  expect(record).toMatchObject({ lastSeenMs: Date.UTC(2026, 2, 1) });
});

test("a detail carries usage as it was written, whatever its scale", () => {
  const detail = { ...node, cpu_usage: 45.2, memory_usage: 0.5, disk_usage: null, created_at: "2026-01-01T00:00:00Z" };
  const { record } = remarksOf(readNodeDetail, detail);
  expect(record).toMatchObject({ cpuUsage: 45.2, memoryUsage: 0.5, diskUsage: null, updatedAtMs: null });
});

test("a session of an unknown type is taken as unknown, with a remark", () => {
  const { record, remarks } = remarksOf(readSessionRecord, { id: "sess_1", status: "active", session_type: "quic" });
  expect(record).toMatchObject({ id: "sess_1", type: "unknown", status: "active" });
  expect(remarks).toMatchObject([{ reason: "unknown_type" }]);
});

test("no JSON whatever makes a reader throw, and what is not read is remarked on", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      for (const read of [readNodeRecord, readNodeDetail, readSessionRecord]) {
        const { record, remarks } = remarksOf(read, json);
        expect(record !== null || remarks.length > 0).toBe(true);
      }
      expect(typeof readPage(json).ok).toBe("boolean");
      for (const read of [readStatistics, readHours]) expect(typeof read(json, () => {}).ok).toBe("boolean");
    }),
  );
});

test("a page without its total is no page, and the error says where it falls short", () => {
  const page = readPage({ data: [], pagination: { page: 1, limit: 10 } });
  expect(page.ok ? "" : page.error.message).toContain("this is not a page: pagination.total");
});

test("hours are given in the order of time, without those that can't be read", () => {
  const hours = readHours(
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

test("odd entries of a top list are left out one by one, and a list without end is cut", () => {
  const countries = Array.from({ length: 1_000 }, (_, index) => ({ country: `C${index}`, sessions: index }));
  const odd = [
    { country: null, sessions: 1 },
    { country: "x".repeat(300), sessions: 1 },
    { country: "DE", sessions: -1 },
  ];
  const remarks: Remark[] = [];
  const stats = readStatistics({ top_countries: [...odd, ...countries] }, (remark) => remarks.push(remark));
  expect(remarks.map(({ reason }) => reason)).toEqual(["wrong_type", "wrong_type", "wrong_type"]);
  expect(stats.ok && stats.value.topCountries.length).toBe(297);
});
