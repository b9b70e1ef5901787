import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { UNLISTED_HOLDS_MAX } from "../../../src/remediation/operator-commands.ts";
import type { Secret, Transport } from "../../../src/model/ports.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { fixedKey } from "../../harness/virtual-daemon.ts";
import { courses, deeds, told, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

/** Half an hour in quarantine, and then somebody is told. */
const hide = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] });
const now = (ward: WardRun) => ward.daemon.clock.now();

test("a person's quarantine in mid-episode holds the next step for as long as it lasts", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ when: 'node.status != "online"' })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(7 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  ward.people.quarantine(node!, now(ward) + 3 * HOUR_MS);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(1);
  expect([...new Set(ward.reasons(node!))]).toEqual(["ownership"]);
  await ward.stop();
});

test("a node in maintenance is not touched", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ when: 'node.status != "online"' })]) });
  const [node] = ward.nodes("us-east");
  // A person mends it: ten minutes of maintenance.
  ward.people.fallIll(node!, { ailment: "outage", cure: "person", healAt: now(ward) + MINUTE_MS });
  await ward.pass(10 * MINUTE_MS);
  expect(ward.status(node!)).toBe("maintenance");
  // The repair has restarted it: its uptime fell without a reboot of ours.
  expect(ward.reasons(node!)).toEqual(["ownership", "status"]);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("our quarantine lifted early by a person is seen twice before it is believed, and then the episode is theirs", async () => {
  const ward = await startWard({ rules: rulesOf([{ ...hide, when: 'node.status != "online"' }]) });
  const [node] = ward.nodes("us-east");
  const passes = { healAt: now(ward) + 12 * MINUTE_MS };
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", ...passes });
  await ward.pass(15 * MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  ward.people.liftQuarantine(node!);
  await ward.pass(MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  await ward.pass(MINUTE_MS);
  expect(courses(ward)).toEqual(["freed"]);
  expect(ward.warden().view.explain(node!).holds).toMatchObject([{ kind: "vetoed", policy: "reboot-offline" }]);
  await ward.stop();
});

test("the veto of a person who freed a node outlives a restart, and release ends it", async () => {
  const ward = await startWard({
    rules: rulesOf([{ ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"' }]),
  });
  const node = "node_caffe390";
  await ward.pass(10 * MINUTE_MS);
  ward.people.liftQuarantine(node);
  await ward.pass(5 * MINUTE_MS);
  ward.kill();
  await ward.restart();
  await ward.pass(HOUR_MS);
  expect(ward.reasons(node)).toEqual(["vetoed"]);
  expect(ward.warden().orders.release(node)).toMatchObject({ ok: true });
  await ward.pass(2 * MINUTE_MS);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

test("a quarantine of ours that outlasts its time is told as overdue, once, and left as it is; when it ends there is a probation", async () => {
  const ward = await startWard({ rules: rulesOf([hide]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(15 * MINUTE_MS);
  // A person wants it to be longer.
  ward.people.quarantine(node!, now(ward) + 2 * HOUR_MS);
  await ward.pass(HOUR_MS);
  expect(told(ward, "overdue")).toMatchObject([{ node }]);
  expect(courses(ward)).toEqual(["quarantined"]);
  expect(ward.postCount()).toBe(1);
  await ward.pass(HOUR_MS + 8 * MINUTE_MS);
  expect(told(ward, "overdue")).toHaveLength(1);
  expect(told(ward, "step")).toHaveLength(1);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("a node that is well after our quarantine is healed once it stays so for clear_for", async () => {
  const ward = await startWard({ rules: rulesOf([hide]) });
  const [node] = ward.nodes("us-east");
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt: now(ward) + 20 * MINUTE_MS });
  await ward.pass(42 * MINUTE_MS);
  expect(courses(ward)).toEqual(["probation"]);
  await ward.pass(10 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("pause holds everybody, outlives a restart, and says why; resume lets them go", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.warden().orders.pause("a release");
  ward.fell(node!);
  await ward.pass(20 * MINUTE_MS);
  ward.kill();
  await ward.restart();
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.decisions().at(-1)!.blockers).toMatchObject([
    { reason: "paused", detail: expect.stringContaining("a release") },
  ]);
  expect(ward.warden().orders.resume()).toEqual({ ok: true, value: "resumed" });
  await ward.pass(2 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  expect(ward.warden().orders.resume()).toEqual({ ok: true, value: "it was not paused" });
  await ward.stop();
});

test("a pause between the decision and the POST is heeded", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => ward.actions().length > 0);
  ward.warden().orders.pause("at the last moment");
  await ward.pass(MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.actions()).toMatchObject([{ state: "withdrawn", detail: expect.stringContaining("at the last moment") }]);
  expect(ward.episodes()).toMatchObject([{ state: "firing", failures: 0 }]);
  await ward.stop();
});

test("a pause while the POST waits for leave to be sent is heeded: all is decided once more as it goes out", async () => {
  let isRead = false;
  let paused = 0;
  // The key is asked for when there is leave to send, right before anything goes out.
  const secret: Secret = {
    ...fixedKey(SIMULATION_KEY),
    value() {
      if (isRead && paused === 0) {
        paused++;
        ward.warden().orders.pause("at the very last moment");
      }
      return SIMULATION_KEY;
    },
  };
  const telling = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      isRead ||= request.path.startsWith("/v1/nodes/");
      return answer;
    },
  });
  const ward: WardRun = await startWard({ rules: rulesOf([rebootOffline()]), secret, between: telling });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(10 * MINUTE_MS);
  expect(paused).toBe(1);
  expect(ward.actions()).toMatchObject([{ state: "withdrawn", detail: expect.stringContaining("very last moment") }]);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("a held node is not touched by any policy until it is released; others are", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [held, other] = [ward.nodes("us-east")[0]!, ward.nodes("eu-west")[0]!];
  expect(ward.warden().orders.hold(held, "looking into it")).toMatchObject({ ok: true });
  ward.fell(held);
  ward.fell(other);
  await ward.pass(20 * MINUTE_MS);
  await ward.restart();
  await ward.pass(5 * MINUTE_MS);
  expect(touched(ward)).toEqual([other]);
  expect(ward.reasons(held)).toEqual(["held"]);
  ward.warden().orders.release(held);
  await ward.pass(20 * MINUTE_MS);
  expect(touched(ward)).toEqual([other, held]);
  expect(ward.warden().orders.release(held)).toMatchObject({ ok: false, error: { kind: "not_found" } });
  await ward.stop();
});

test("a node that is not listed can be held in advance: the answer says so, and the hold is in force once it is listed", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]), scenario: { nodes: 20 } });
  const held = ward.warden().orders.hold("node_new", "not in service yet");
  expect(held).toEqual({
    ok: true,
    value: expect.stringMatching(/^node_new is held: not in service yet; .*no node of that id is listed now/),
  });
  expect(ward.warden().view.explain("node_new").holds).toMatchObject([{ kind: "held", node: "node_new" }]);
  for (let n = 1; n < UNLISTED_HOLDS_MAX; n++)
    expect(ward.warden().orders.hold(`node_new_${n}`, "")).toMatchObject({ ok: true });
  expect(ward.warden().orders.hold("node_more", "")).toMatchObject({ ok: false, error: { kind: "conflict" } });
  // A hold that is there already may be changed, and a listed node may always be held.
  expect(ward.warden().orders.hold("node_new", "another reason")).toMatchObject({ ok: true });
  expect(ward.warden().orders.hold(ward.nodes()[0]!, "")).toMatchObject({ ok: true });
  expect(ward.warden().orders.release("node_new_1")).toMatchObject({ ok: true });
  expect(ward.warden().orders.hold("node_more", "")).toMatchObject({ ok: true });
  await ward.stop();
});

test("a protected node is never touched, nor one of which that can't be said", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { protected: 'node.region == "us-east"' }) });
  const [vip] = ward.nodes("us-east");
  ward.fell(vip!);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.reasons(vip!)).toEqual(["protected"]);
  // Its processor has never been read.
  await ward.restart({ rules: rulesOf([rebootOffline()], { protected: "node.cpu_usage > 0.9" }) });
  await ward.pass(10 * MINUTE_MS);
  expect(ward.reasons(vip!)).toEqual(["protected"]);
  expect(ward.postCount()).toBe(0);
  expect(deeds(ward)).toEqual([]);
  await ward.stop();
});
