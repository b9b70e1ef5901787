import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { fail, ok, type Result } from "../../../src/base/result.ts";
import type { BlockedBy } from "../../../src/model/policy/policy.ts";
import type { Obstacles } from "../../../src/model/ports.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";
import { courses, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

/** A Prometheus and an Alertmanager that say what a test wants, and count how often they are asked. */
function oracle() {
  const asked: string[] = [];
  const said = { query: ok(false) as Result<boolean, string>, alerts: ok(false) as Result<boolean, string> };
  const obstacles: Obstacles = {
    query(query) {
      asked.push(query);
      return Promise.resolve(said.query);
    },
    alerts(matchers) {
      asked.push(matchers.join(","));
      return Promise.resolve(said.alerts);
    },
  };
  return { asked, said, obstacles };
}

const query: BlockedBy = { kind: "query", query: 'ALERTS{alertname="Upstream"}' };
const alerts: BlockedBy = { kind: "alerts", matchers: ['severity="critical"'] };
const reasonsIn = (ward: WardRun) => ward.decisions().at(-1)!.blockers;

test("blocked_by: what blocks holds a policy until it blocks no more", async () => {
  const { said, obstacles } = oracle();
  const ward = await startWard({ rules: rulesOf([rebootOffline({ blockedBy: [query, alerts] })]), obstacles });
  const [node] = ward.nodes("us-east");
  said.query = ok(true);
  said.alerts = ok(true);
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["blocked_by", "blocked_by"]);
  said.query = ok(false);
  await ward.pass(5 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["blocked_by"]);
  expect(ward.postCount()).toBe(0);
  said.alerts = ok(false);
  await ward.pass(20 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("blocked_by: one that can't be asked blocks, and says so", async () => {
  const { said, obstacles } = oracle();
  const ward = await startWard({ rules: rulesOf([rebootOffline({ blockedBy: [query] })]), obstacles });
  said.query = fail("connection refused");
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(reasonsIn(ward)).toMatchObject([
    { reason: "blocked_by", detail: expect.stringContaining("connection refused") },
  ]);
  await ward.stop();
});

test("blocked_by: it is asked again right before the POST, and what blocks by then keeps it from being sent", async () => {
  const { asked, said, obstacles } = oracle();
  const ward = await startWard({ rules: rulesOf([rebootOffline({ blockedBy: [query] })]), obstacles });
  ward.warden().orders.pause("a test");
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => asked.length > 0);
  await ward.pass(10 * SECOND_MS);
  // Quiet by the answer of ten seconds ago, and no more by now.
  said.query = ok(true);
  ward.warden().orders.resume();
  await ward.pass(SECOND_MS);
  expect(asked).toHaveLength(2);
  expect(ward.actions()).toMatchObject([{ state: "withdrawn", detail: expect.stringContaining("blocked_by") }]);
  expect(ward.postCount()).toBe(0);
  said.query = ok(false);
  await ward.pass(15 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("blocked_by: nobody is asked while no node is ill", async () => {
  const { asked, obstacles } = oracle();
  const ward = await startWard({ rules: rulesOf([rebootOffline({ blockedBy: [query] })]), obstacles });
  await ward.pass(HOUR_MS);
  expect(asked).toEqual([]);
  await ward.stop();
});

/** From the start of a test until that many minutes after. */
const until = (minutes: number): TimeInterval => ({
  name: "early",
  intervals: [{ times: [{ startMinute: 0, endMinute: minutes }] }],
});

test("a window that closes between the decision and the POST keeps it from being sent", async () => {
  const rules = { ...rulesOf([rebootOffline({ windows: ["early"] })]), intervals: [until(15)] };
  const ward = await startWard({ rules });
  ward.strike({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  // It fires two seconds before the window closes, and the fresh read takes longer.
  await ward.pass(START_MS + 15 * MINUTE_MS - 2 * SECOND_MS - 5 * MINUTE_MS - ward.daemon.clock.now());
  ward.fell(ward.nodes("us-east")[0]!);
  const closes = START_MS + 15 * MINUTE_MS;
  await ward.passUntil(() => ward.actions().length > 0 || ward.daemon.clock.now() >= closes);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(ward.nodes("us-east")[0]!)).toEqual(["window"]);
  await ward.stop();
});

test("a window is one of new actions: a step that is under way as it closes is judged, and the next one waits", async () => {
  const rules = { ...rulesOf([rebootOffline({ windows: ["early"] })]), intervals: [until(15)] };
  const ward = await startWard({ rules });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "forced_reboot");
  await ward.pass(HOUR_MS);
  expect(ward.actions()).toMatchObject([{ outcome: "ineffective" }]);
  expect(courses(ward)).toEqual(["firing"]);
  expect(ward.reasons(node!)).toEqual(["window"]);
  await ward.stop();
});

test("a window that is open by the service's clock alone is closed: one of both clocks is wrong", async () => {
  const rules = { ...rulesOf([rebootOffline({ windows: ["early"] })]), intervals: [until(60)] };
  const ward = await startWard({ rules });
  ward.daemon.clock.step(2 * HOUR_MS);
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(ward.nodes("us-east")[0]!)).toEqual(["window"]);
  await ward.stop();
});

test("a window must be open by our clock and by the service's: a clock that was set opens none", async () => {
  const rules = { ...rulesOf([rebootOffline({ windows: ["early"] })]), intervals: [until(10)] };
  const ward = await startWard({ rules });
  await ward.pass(10 * MINUTE_MS);
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["window"]);
  ward.daemon.clock.step(-20 * MINUTE_MS);
  await ward.pass(5 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["window"]);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});
