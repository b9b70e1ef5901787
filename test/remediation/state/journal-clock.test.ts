import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";
import { courses, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard, type WardRun } from "../../harness/quiet-network.ts";

const JUMP_MS = 100 * DAY_MS;
const trueTime = (ward: WardRun, jump: number) => ward.daemon.clock.now() - jump;
const rows = (ward: WardRun) => [ward.actions().length, ward.episodes().length, ward.decisions().length];

test("a wall clock that is 100 days ahead at one start prunes nothing, and leaves no later time ahead", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [first, second] = oneOfEach(ward, 2);
  ward.fell(first!);
  await ward.pass(40 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  const before = rows(ward);
  ward.daemon.clock.step(JUMP_MS);
  await ward.restart();
  await ward.pass(HOUR_MS);
  expect(rows(ward)).toEqual(before);
  // The cool-down of what was done before is remembered all the same.
  ward.fell(second!);
  await ward.pass(20 * MINUTE_MS);
  expect(touched(ward)).toEqual([first, second]);
  const { sentAt } = ward.actions().at(-1)!;
  expect(Math.abs(sentAt! - trueTime(ward, JUMP_MS))).toBeLessThan(30 * MINUTE_MS);
  ward.daemon.clock.step(-JUMP_MS);
  await ward.restart();
  await ward.pass(10 * MINUTE_MS);
  expect(Math.abs(ward.daemon.books.now() - ward.daemon.clock.now())).toBeLessThan(5 * MINUTE_MS);
  await ward.stop();
});

test("a wall clock that is 2 h ahead at a start frees nothing of max_actions, and ends no cool-down", async () => {
  const maxActions = { amount: 2, perMs: HOUR_MS };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { maxActions }) });
  const [first, second, third] = oneOfEach(ward, 3);
  ward.fell(first!);
  await ward.pass(10 * MINUTE_MS);
  ward.fell(second!);
  await ward.pass(10 * MINUTE_MS);
  expect(touched(ward)).toEqual([first, second]);
  ward.daemon.clock.step(2 * HOUR_MS);
  ward.fell(third!);
  await ward.restart();
  await ward.pass(20 * MINUTE_MS);
  expect(touched(ward)).toEqual([first, second]);
  expect(ward.reasons(third!)).toEqual(["max_actions"]);
  await ward.pass(40 * MINUTE_MS);
  expect(touched(ward)).toEqual([first, second, third]);
  await ward.stop();
});

test("after a long downtime a wall clock that is wrong holds every action, until it is right", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  ward.daemon.clock.step(JUMP_MS);
  await ward.restart({ downMs: DAY_MS });
  await ward.pass(20 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toEqual(["service_clock"]);
  expect(ward.warden().view.explain(node!).policies[0]!.blockers[0]!.detail).toMatch(/wall clock .* is 100d ahead of/);
  ward.daemon.clock.step(-JUMP_MS);
  await ward.pass(2 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(ward.daemon.books.now()).toBe(ward.daemon.clock.now());
  await ward.stop();
});

test("where the clocks go on to disagree after a long downtime, the hold ends after an hour by the earlier of them", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  ward.daemon.clock.step(JUMP_MS);
  await ward.restart({ downMs: DAY_MS });
  await ward.pass(55 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(Math.abs(ward.daemon.books.now() - trueTime(ward, JUMP_MS))).toBeLessThan(MINUTE_MS);
  await ward.stop();
});

test("a first start with a wall clock that is ahead takes the service's time for the journal", async () => {
  const clock = createVirtualClock(START_MS);
  // The service is there, and the daemon not yet.
  const between = (service: Transport) => {
    clock.step(JUMP_MS);
    return service;
  };
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.reboot] })]), clock, between });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(Math.abs(ward.actions()[0]!.createdAt - trueTime(ward, JUMP_MS))).toBeLessThan(20 * MINUTE_MS);
  await ward.stop();
});

test("a service whose Date is days ahead at a start moves the journal's clock no more than a wall clock does", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { maxActions: { amount: 1, perMs: HOUR_MS } }) });
  const [first, second] = oneOfEach(ward, 2);
  ward.fell(first!);
  await ward.pass(10 * MINUTE_MS);
  ward.fell(second!);
  ward.strike({ kind: "clock_skew", skewMs: JUMP_MS });
  await ward.restart();
  await ward.pass(30 * MINUTE_MS);
  expect(touched(ward)).toEqual([first]);
  expect(ward.daemon.books.now() - ward.daemon.clock.now()).toBeLessThan(MINUTE_MS);
  await ward.stop();
});
