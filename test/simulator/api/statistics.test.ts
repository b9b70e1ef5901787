import fc from "fast-check";
import { expect, test } from "vitest";
import { propertyRuns } from "../../harness/run-length.ts";
import { actualNodes, actualSessions } from "../../harness/simulator/actual-state.ts";
import { createTestClient, json, START, scenarioWith, type TestClient } from "../api-caller.ts";

const HOUR_MS = 3_600_000;
const busyRates = {
  faultEveryMs: 2 * HOUR_MS,
  selfHealing: 0.5,
  incurable: 0.2,
  flapping: 0.3,
  rebootMs: 60_000,
  maintenanceEveryMs: 12 * HOUR_MS,
  repairMs: HOUR_MS,
};

/** Time passes, then an action is sent to a node, or none. */
const randomEvents = fc.array(
  fc.record({
    passMs: fc.oneof(fc.nat({ max: 5_000 }), fc.nat({ max: 20 * 60_000 }), fc.nat({ max: 9 * HOUR_MS })),
    node: fc.nat({ max: 24 }),
    action: fc.constantFrom("none", "disconnect", "reboot", "quarantine"),
  }),
  { minLength: 1, maxLength: 8 },
);

function applyAction(client: TestClient, node: number, action: string): void {
  const path = `/v1/nodes/${client.service.network.fleet.nodes[node]!.id}`;
  if (action === "quarantine") client.post(`${path}/quarantine`, { reason: "test", duration_minutes: 30 });
  else if (action !== "none") client.post(`${path}/${action}`);
}

const countBy = <T>(items: readonly T[], key: (item: T) => string): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const item of items) counts[key(item)] = (counts[key(item)] ?? 0) + 1;
  return counts;
};

test("the statistics and the counts of the nodes always agree with the sessions", () => {
  fc.assert(
    fc.property(fc.nat({ max: 1_000 }), randomEvents, (seed, events) => {
      const client = createTestClient(scenarioWith({ seed, nodes: 25, sessions: 150, rates: busyRates }));
      for (const { passMs, node, action } of events) {
        client.now += passMs;
        applyAction(client, node, action);
        const stats = json(client.get("/v1/sessions/stats"));
        const sessions = [...actualSessions(client.service)].filter(({ status }) => status === "active");
        expect(stats.active_sessions).toBe(sessions.length);
        const countries = countBy(sessions, ({ country }) => country);
        for (const { country, sessions: count } of stats.top_countries) expect(countries[country]).toBe(count);
        expect(stats.top_countries).toHaveLength(Math.min(10, Object.keys(countries).length));
        const protocols = countBy(sessions, ({ session_type: type }) => (type === "websocket" ? "https" : type));
        for (const { protocol, sessions: count } of stats.top_protocols) expect(protocols[protocol] ?? 0).toBe(count);
        const ages = sessions.map(({ started_at }) => (client.now - Date.parse(started_at)) / 1_000);
        const age = Math.floor(ages.reduce((sum, one) => sum + one, 0) / Math.max(1, ages.length));
        expect(Math.abs(stats.average_session_duration_seconds - age)).toBeLessThanOrEqual(1);
        expect(stats.peak_concurrent_sessions).toBeGreaterThanOrEqual(sessions.length);
        const byNode = countBy(sessions, ({ node_id }) => node_id);
        for (const { id, active_sessions: count } of actualNodes(client.service)) expect(byNode[id] ?? 0).toBe(count);
      }
    }),
    propertyRuns(40),
  );
});

test("the traffic of the day and of the nodes grows by the traffic of the sessions", () => {
  const client = createTestClient(scenarioWith());
  const bytes = () => {
    const sessions = [...actualSessions(client.service)];
    return new Map(sessions.map(({ id, bytes_sent, bytes_received }) => [id, bytes_sent + bytes_received]));
  };
  client.get("/v1/nodes");
  const ofNodes = () => [...actualNodes(client.service)].reduce((sum, { bandwidth_gb }) => sum + bandwidth_gb, 0);
  const today = () => json(client.get("/v1/sessions/stats")).bandwidth_today_gb;
  const before = { ofNodes: ofNodes(), today: today() };
  let known = bytes();
  let moved = 0;
  // Ended sessions are readable for five minutes, so reading every minute misses none.
  for (let minute = 0; minute < 60; minute += 1) {
    client.now += 60_000;
    client.get("/v1/nodes");
    const now = bytes();
    for (const [id, total] of now) {
      const gain = total - (known.get(id) ?? 0);
      expect(gain).toBeGreaterThanOrEqual(0);
      moved += gain;
    }
    known = now;
  }
  const movedGb = moved / 1e9;
  expect(movedGb).toBeGreaterThan(10);
  expect(Math.abs(today() - before.today - movedGb)).toBeLessThan(0.0011);
  // The value of each of the 40 nodes is rounded twice.
  expect(Math.abs(ofNodes() - before.ofNodes - movedGb)).toBeLessThan(40 * 0.0011);
});

test("sessions on a healthy fleet mostly end as closed, and some by errors and timeouts", () => {
  const client = createTestClient(scenarioWith({ sessions: 3_000 }));
  const ended = new Map<string, string>();
  for (let step = 0; step < 15; step += 1) {
    client.now += 4 * 60_000;
    client.get("/v1/nodes");
    for (const { id, status } of actualSessions(client.service))
      if (!/active|connecting/.test(status)) ended.set(id, status);
  }
  const { closed = 0, error = 0, timeout = 0 } = countBy([...ended.values()], (status) => status);
  expect(Math.min(error, timeout)).toBeGreaterThan(0);
  expect((error + timeout) / (closed + error + timeout)).toBeLessThan(0.03);
  const active = [...actualSessions(client.service)].filter(({ status }) => status === "active").length;
  expect(active / 3_000).toBeGreaterThan(0.8);
  expect(active / 3_000).toBeLessThan(1.2);
});

test("a few customers have many sessions, and most have few", () => {
  const client = createTestClient(scenarioWith({ sessions: 4_000 }));
  const counts = Object.values(countBy([...actualSessions(client.service)], ({ customer_id }) => customer_id));
  counts.sort((one, other) => other - one);
  const top = counts.slice(0, 20).reduce((sum, count) => sum + count, 0);
  expect(counts.length).toBeGreaterThan(150);
  expect(top / 4_000).toBeGreaterThan(0.35);
});

test("the hourly statistics cover the last 24 complete hours and continue the synthetic history smoothly", () => {
  const client = createTestClient(scenarioWith({ sessions: 1_000 }));
  const hours = () => json(client.get("/v1/sessions/stats/hourly")).data;
  const expectHours = (lastHour: number) => {
    const starts = hours().map(({ hour }: { hour: string }) => Date.parse(hour));
    expect(starts).toEqual(Array.from({ length: 24 }, (_, index) => lastHour - (23 - index) * HOUR_MS));
  };
  expectHours(Date.UTC(2026, 3, 15, 9));
  const syntheticTotal = hours().reduce(
    (sum: number, { new_sessions: count }: { new_sessions: number }) => sum + count,
    0,
  );
  client.now += 25 * HOUR_MS;
  expectHours(Date.UTC(2026, 3, 16, 10));
  const simulatedTotal = hours().reduce(
    (sum: number, { new_sessions: count }: { new_sessions: number }) => sum + count,
    0,
  );
  expect(simulatedTotal / syntheticTotal).toBeGreaterThan(0.93);
  expect(simulatedTotal / syntheticTotal).toBeLessThan(1.07);
});

test("the totals of the day are the sums of its hours since midnight", () => {
  const client = createTestClient(scenarioWith());
  const past = json(client.get("/v1/sessions/stats/hourly")).data.slice(-10);
  const sinceMidnight = past.reduce((sum: number, { new_sessions: count }: { new_sessions: number }) => sum + count, 0);
  const running = json(client.get("/v1/sessions/stats")).total_sessions_today - sinceMidnight;
  // The current hour is 20.5 minutes old.
  expect(running / (sinceMidnight / 10)).toBeGreaterThan(0.25);
  expect(running / (sinceMidnight / 10)).toBeLessThan(0.5);
  client.now = Date.UTC(2026, 3, 16) - 1;
  const beforeMidnight = json(client.get("/v1/sessions/stats"));
  expect(beforeMidnight.total_sessions_today).toBeGreaterThan(10_000);
  client.now += 1;
  const atMidnight = json(client.get("/v1/sessions/stats"));
  expect(atMidnight.total_sessions_today).toBeLessThan(20);
  expect(atMidnight.bandwidth_today_gb).toBe(0);
  client.now = Date.UTC(2026, 3, 16, 5);
  const today = json(client.get("/v1/sessions/stats"));
  const hours = json(client.get("/v1/sessions/stats/hourly")).data.slice(-5);
  const sum = (field: string) => hours.reduce((total: number, hour: Record<string, number>) => total + hour[field]!, 0);
  expect(Math.abs(today.total_sessions_today - sum("new_sessions"))).toBeLessThan(5);
  expect(today.bandwidth_today_gb).toBeCloseTo(sum("bandwidth_gb"), 1);
  for (const { active_sessions: active } of hours)
    expect(today.peak_concurrent_sessions).toBeGreaterThanOrEqual(active);
});

test("gives the same bytes to the same requests at the same times, and different ones with another seed", () => {
  const paths = ["/v1/nodes?limit=30", "/v1/sessions?limit=50", "/v1/sessions/stats", "/v1/sessions/stats/hourly"];
  const replies = (seed: number, events: readonly { passMs: number; node: number; action: string }[]) => {
    const faults = [{ afterMs: 0, forMs: 9 * HOUR_MS, share: 0.3, fault: { kind: "bad_json" as const } }];
    const client = createTestClient(scenarioWith({ seed, nodes: 25, sessions: 150, rates: busyRates, faults }));
    return events.flatMap(({ passMs, node, action }) => {
      client.now += passMs;
      applyAction(client, node, action);
      return paths.map((path) => client.get(path));
    });
  };
  fc.assert(
    fc.property(fc.nat({ max: 1_000 }), randomEvents, (seed, events) => {
      const first = replies(seed, events);
      expect(replies(seed, events)).toEqual(first);
      expect(replies(seed + 1, events)).not.toEqual(first);
    }),
    { numRuns: 10 },
  );
});

test("treats a time before an earlier one as the earlier one", () => {
  const client = createTestClient(scenarioWith());
  client.now += 90_000;
  const later = client.get("/v1/sessions/stats");
  client.now = START;
  expect(client.get("/v1/sessions/stats").body).toBe(later.body);
});
