import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { deeds, told } from "../../harness/action-lines.ts";
import { onceOnly, rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { quietRates, startWard } from "../../harness/quiet-network.ts";

test("a node that a reboot heals is rebooted once, verified with proof, and its episode closes as healed", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(40 * MINUTE_MS);
  expect(ward.posts()).toEqual([{ endpoint: "POST /v1/nodes/{id}/reboot", status: 200, count: 1 }]);
  expect(ward.actions()).toMatchObject([
    { node, request: { kind: "reboot", force: false }, state: "ended", outcome: "verified", proof: "uptime_fell" },
  ]);
  expect(ward.episodes()).toMatchObject([{ node, state: "healed", acted: 1 }]);
  expect(told(ward, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await ward.stop();
});

test("a node is not touched before `when` was observed true for `for`", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: 15 * MINUTE_MS })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.pass(2 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("a node that only a forced reboot heals gets both, the second only after the first was seen to have failed", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "forced_reboot");
  await ward.pass(15 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: null"]);
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  const [first, second] = ward.actions();
  expect(second!.sentAt! - first!.sentAt!).toBeGreaterThanOrEqual(10 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ node, state: "healed", acted: 2 }]);
  await ward.stop();
});

const wholeLadder = [steps.disconnect, steps.reboot, steps.force, steps.quarantine, steps.notify];

test("a node that nothing heals gets the whole ladder, a step at a time, and is then given up, and that is said", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: wholeLadder, retry: onceOnly })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(HOUR_MS);
  expect(deeds(ward)).toEqual([
    "disconnect: ineffective",
    "reboot: ineffective",
    "forced reboot: ineffective",
    "quarantine: verified",
  ]);
  expect(ward.status(node!)).toBe("quarantined");
  expect(ward.episodes()).toMatchObject([{ node, state: "quarantined", acted: 4 }]);
  await ward.pass(2 * HOUR_MS);
  // Out of the quarantine it is ill as before, and after `for` somebody is told; there is no step after that.
  expect(deeds(ward)).toHaveLength(4);
  expect(told(ward, "step")).toMatchObject([{ node, severity: "critical" }]);
  expect(told(ward, "given_up")).toMatchObject([{ node }]);
  expect(ward.episodes()).toMatchObject([{ node, state: "given_up", acted: 4 }]);
  await ward.stop();
});

test("a node that was not healed is tried again after retry.every, and is given up after retry.episodes, also beyond forget_after", async () => {
  const retry = { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 4 * HOUR_MS };
  const rules = rulesOf([rebootOffline({ steps: [steps.reboot], retry })]);
  const ward = await startWard({ rules });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(30 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ state: "given_up" }]);
  expect(ward.reasons(node!)).toEqual(["cooldown", "retry_wait"]);
  await ward.pass(HOUR_MS + 15 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ state: "given_up" }, { state: "given_up" }]);
  const [first, second] = ward.episodes();
  expect(second!.openedAt - first!.closedAt!).toBeGreaterThanOrEqual(retry.everyMs);
  await ward.pass(2 * HOUR_MS);
  expect(ward.postCount()).toBe(2);
  expect(ward.reasons(node!)).toEqual(["retry_limit"]);
  expect(told(ward, "given_up")).toHaveLength(1);
  await ward.pass(45 * MINUTE_MS);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

test("a node that falls ill again within clear_for stays in its episode, and gets the next step after `for`", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(12 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ state: "recovering" }]);
  ward.fell(node!, "forced_reboot");
  await ward.pass(5 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: verified", "forced reboot: verified"]);
  expect(ward.episodes()).toMatchObject([{ state: "healed", acted: 2 }]);
  await ward.stop();
});

test("a node that recovers by itself before its step is not touched, and its episode closes as cleared", async () => {
  const nowhere = { maxActions: { amount: 0, perMs: HOUR_MS } };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], nowhere) });
  const [node] = ward.nodes("us-east");
  const healAt = ward.daemon.clock.now() + 10 * MINUTE_MS;
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt });
  await ward.pass(8 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ state: "firing" }]);
  expect(ward.reasons(node!)).toEqual(["max_actions"]);
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.episodes()).toMatchObject([{ state: "cleared", acted: 0 }]);
  await ward.stop();
});

test("a reboot whose node never comes back is waited for as long again, and is then ineffective", async () => {
  const ward = await startWard({
    rules: rulesOf([rebootOffline()]),
    scenario: { rates: { ...quietRates, rebootMs: 5 * HOUR_MS } },
  });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(25 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: null"]);
  expect(ward.status(node!)).toBe("rebooting");
  await ward.pass(3 * MINUTE_MS);
  expect(deeds(ward)[0]).toBe("reboot: ineffective");
  await ward.stop();
});
