import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { ServiceOptions } from "../../../src/config/schema/scenario.ts";
import { createTestClient, json, START, scenarioWith, type TestClient } from "../api-caller.ts";

const clientWith = (options: Partial<ServiceOptions>) => createTestClient(scenarioWith({}, options));
const listed = (client: TestClient) => json(client.get("/v1/nodes")).data[3];
const detail = (client: TestClient) => json(client.get(`/v1/nodes/${listed(client).id}`));

test("writes timestamps in the form that the option says", () => {
  const createdAt = (timestamps: ServiceOptions["timestamps"]): string => detail(clientWith({ timestamps })).created_at;
  const full = createdAt("milliseconds");
  expect(full).toMatch(/^.{19}\.\d{3}Z$/);
  expect(createdAt("seconds")).toBe(full.replace(/\.\d+/, ""));
  expect(createdAt("offset")).toBe(full.replace("Z", "000+00:00"));
  expect(createdAt("no_zone")).toBe(full.replace("Z", ""));
  expect(createdAt("other_zone")).toMatch(/^.{19}\.\d{3}\+05:30$/);
  expect(Date.parse(createdAt("other_zone"))).toBe(Date.parse(full));
});

test("states last_seen as of the last time that the service updates it", () => {
  const client = clientWith({ lastSeenEveryMs: MINUTE_MS });
  const minute = Math.floor(START / MINUTE_MS) * MINUTE_MS;
  const lastSeenAt = (at: number): readonly string[] => {
    client.now = at;
    const { data } = json(client.get("/v1/nodes"));
    return [...new Set<string>(data.map((node: { last_seen: string }) => node.last_seen))];
  };
  expect(lastSeenAt(minute + 59_000)).toEqual([new Date(minute).toISOString()]);
  expect(lastSeenAt(minute + 90_000)).toEqual([new Date(minute + MINUTE_MS).toISOString()]);
});

test("states an older last_seen in details than in the list if the option says so", () => {
  const client = clientWith({ detailLastSeenEveryMs: HOUR_MS });
  expect(Date.parse(listed(client).last_seen)).toBeGreaterThan(START - MINUTE_MS);
  expect(Date.parse(detail(client).last_seen)).toBe(Math.floor(START / HOUR_MS) * HOUR_MS);
});

test("counts the uptime from the last boot or from the creation, as the option says", () => {
  const uptimeAfterReboot = (uptimeSince: ServiceOptions["uptimeSince"]) => {
    const client = clientWith({ uptimeSince });
    client.post(`/v1/nodes/${listed(client).id}/reboot`, { force: true });
    client.now += 10 * MINUTE_MS;
    return { listed: listed(client).uptime_hours, detail: detail(client).uptime_hours, node: detail(client) };
  };
  expect(uptimeAfterReboot("boot")).toMatchObject({ listed: 0, detail: 0 });
  const { listed: hours, node } = uptimeAfterReboot("creation");
  expect(hours).toBe(Math.floor((START + 10 * MINUTE_MS - Date.parse(node.created_at)) / HOUR_MS));
});

test("ends a quarantine after the longest duration, but echoes the requested one", () => {
  const client = clientWith({ quarantineMinutesMax: 10 });
  const { id } = listed(client);
  const reply = client.post(`/v1/nodes/${id}/quarantine`, { reason: "test", duration_minutes: 30 });
  expect(json(reply).duration_minutes).toBe(30);
  client.now += 9 * MINUTE_MS;
  expect(detail(client).status).toBe("quarantined");
  client.now += MINUTE_MS;
  expect(detail(client).status).toBe("online");
});
