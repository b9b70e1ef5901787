import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { courses, told } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf } from "../../harness/policies.ts";
import { oneOfEach, startWard } from "../../harness/quiet-network.ts";

for (const status of [401, 403] as const) {
  test(`a ${status} to a POST is notified once, however often it is refused again, and its end once`, async () => {
    const ward = await startWard({ rules: rulesOf([rebootOffline()], { canary: false, maxInFlight: 5 }) });
    for (const node of oneOfEach(ward, 2)) ward.fell(node);
    ward.strike({ kind: "status", status }, "POST");
    await ward.pass(90 * MINUTE_MS);
    expect(ward.postCount()).toBeGreaterThan(2);
    expect(told(ward, "credentials")).toMatchObject([
      { severity: "critical", endsAt: null, summary: expect.stringContaining(`answered ${status}`) },
    ]);
    ward.strike(null);
    await ward.pass(HOUR_MS);
    expect(courses(ward)).toEqual(["healed", "healed"]);
    expect(told(ward, "credentials")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
    await ward.stop();
  });
}

test("a restart with a key that is right again tries an action at once, and tells the end of the refusal", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  ward.strike({ kind: "status", status: 403 }, "POST");
  await ward.passUntil(() => told(ward, "credentials").length > 0);
  ward.strike(null);
  await ward.restart();
  await ward.pass(5 * MINUTE_MS);
  expect(ward.postCount()).toBe(2);
  await ward.pass(20 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  const notices = told(ward, "credentials");
  expect(notices.map(({ endsAt }) => endsAt === null)).toEqual([true, true, false]);
  expect(new Set(notices.map(({ key }) => key)).size).toBe(1);
  await ward.stop();
});

test("a refusal that no action follows is told to be over after two hours", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.people.fallIll(node!, {
    ...{ ailment: "outage", cure: "time" },
    healAt: ward.daemon.clock.now() + 12 * MINUTE_MS,
  });
  ward.strike({ kind: "status", status: 403 }, "POST");
  await ward.pass(HOUR_MS);
  expect(told(ward, "credentials")).toHaveLength(1);
  await ward.pass(2 * HOUR_MS);
  expect(told(ward, "credentials")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await ward.stop();
});
