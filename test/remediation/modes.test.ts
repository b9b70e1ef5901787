import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { courses, deeds, heldBy, told, touched } from "../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../harness/policies.ts";
import { oneOfEach, startWard } from "../harness/quiet-network.ts";

test("dry_run takes the whole ladder on paper: nothing is posted, and every step is written down as one", async () => {
  const ladder = [steps.disconnect, steps.reboot, { ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify];
  const ward = await startWard({ rules: rulesOf([rebootOffline({ mode: "dry_run", steps: ladder })]) });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(25 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["disconnect: dry_run", "reboot: dry_run", "quarantine: dry_run"]);
  expect(ward.actions().every(({ shadow }) => shadow)).toBe(true);
  expect(courses(ward)).toEqual(["quarantined"]);
  await ward.pass(40 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(courses(ward)).toEqual(["given_up"]);
  // Nobody is told of what did not happen.
  expect(ward.notices).toEqual([]);
  const page = await ward.daemon.metrics.render("text");
  expect(page).toContain('proxywarden_actions_total{policy="reboot-offline",action="reboot",outcome="dry_run"} 1\n');
  expect(page).toContain(
    'proxywarden_actions_total{policy="reboot-offline",action="reboot",outcome="ineffective"} 0\n',
  );
  await ward.stop();
});

test("dry runs have limits of their own: they use nothing of the real ones, and are held as the real ones would be", async () => {
  const policies = [
    rebootOffline({ name: "paper", mode: "dry_run", match: 'node.region != "us-east"' }),
    rebootOffline({ name: "real", match: 'node.region == "us-east"' }),
  ];
  const ward = await startWard({ rules: rulesOf(policies, { maxActions: { amount: 1, perMs: HOUR_MS } }) });
  const [first, second] = [ward.nodes("eu-west")[0]!, ward.nodes("us-west")[0]!];
  ward.fell(first, "person");
  ward.fell(second, "person");
  await ward.pass(8 * MINUTE_MS);
  const [real] = ward.nodes("us-east");
  ward.fell(real!);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([
    { shadow: true, outcome: "dry_run" },
    { shadow: false, node: real, outcome: "verified" },
  ]);
  expect(heldBy(ward)).toContain("max_actions");
  await ward.stop();
});

const approving = rebootOffline({ mode: "approve" });

test("approve asks a person, once, and acts on exactly what was shown once it is approved", async () => {
  const ward = await startWard({ rules: rulesOf([approving]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  const [shown, ...others] = ward.warden().view.approvals();
  expect(others).toEqual([]);
  expect(shown).toMatchObject({ node, request: { kind: "reboot", force: false }, state: "awaiting" });
  expect(told(ward, "approval")).toHaveLength(1);
  expect(ward.reasons(node!)).toEqual(["approval"]);
  expect(ward.warden().orders.approve(shown!.id)).toMatchObject({ ok: true });
  await ward.pass(10 * SECOND_MS);
  expect(ward.actions()).toMatchObject([
    { id: shown!.id, request: shown!.request, evidence: shown!.evidence, state: "sent" },
  ]);
  await ward.pass(20 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  expect(ward.warden().orders.approve(shown!.id)).toMatchObject({ ok: false, error: { kind: "conflict" } });
  expect(ward.warden().orders.approve("act-999")).toMatchObject({ ok: false, error: { kind: "not_found" } });
  await ward.stop();
});

test("what waits for a person lapses with its evidence", async () => {
  const ward = await startWard({ rules: rulesOf([approving]) });
  const [node] = ward.nodes("us-east");
  const healAt = ward.daemon.clock.now() + 15 * MINUTE_MS;
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt });
  await ward.pass(10 * MINUTE_MS);
  const [shown] = ward.warden().view.approvals();
  await ward.pass(7 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ state: "lapsed", detail: "the node is not unhealthy any more" }]);
  expect(ward.warden().orders.approve(shown!.id)).toMatchObject({ ok: false, error: { kind: "conflict" } });
  await ward.pass(20 * MINUTE_MS);
  expect(courses(ward)).toEqual(["cleared"]);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("what was approved and is held meanwhile lapses with its evidence, too", async () => {
  const ward = await startWard({ rules: rulesOf([approving]) });
  const [node] = ward.nodes("us-east");
  const healAt = ward.daemon.clock.now() + 15 * MINUTE_MS;
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt });
  await ward.pass(10 * MINUTE_MS);
  ward.warden().orders.pause("a test");
  ward.warden().orders.approve(ward.warden().view.approvals()[0]!.id);
  await ward.pass(7 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ state: "lapsed" }]);
  ward.warden().orders.resume();
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("a rejected step is not asked for again in its episode", async () => {
  const ward = await startWard({ rules: rulesOf([approving]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  const [shown] = ward.warden().view.approvals();
  expect(ward.warden().orders.reject(shown!.id, "it is being moved")).toMatchObject({ ok: true });
  await ward.pass(30 * MINUTE_MS);
  expect(ward.warden().view.approvals()).toEqual([]);
  expect(ward.reasons(node!)).toEqual(["rejected"]);
  expect(ward.actions()).toMatchObject([{ state: "rejected", detail: expect.stringContaining("it is being moved") }]);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("what waits for a person, and what was approved, outlives a restart", async () => {
  const ward = await startWard({ rules: rulesOf([approving]) });
  const [first, second] = oneOfEach(ward, 2);
  ward.fell(first!);
  await ward.pass(10 * MINUTE_MS);
  const [shown] = ward.warden().view.approvals();
  ward.kill();
  await ward.restart();
  await ward.pass(5 * MINUTE_MS);
  expect(ward.warden().view.approvals()).toMatchObject([{ id: shown!.id }]);
  ward.warden().orders.pause("a test");
  ward.warden().orders.approve(shown!.id);
  await ward.restart();
  await ward.pass(5 * MINUTE_MS);
  ward.warden().orders.resume();
  ward.fell(second!);
  await ward.pass(4 * MINUTE_MS);
  expect(ward.actions().filter(({ sentAt }) => sentAt !== null)).toMatchObject([{ id: shown!.id }]);
  await ward.stop();
});

test("an approval says yes to one step alone: the next one is asked for anew", async () => {
  const ward = await startWard({ rules: rulesOf([approving]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "forced_reboot");
  await ward.pass(8 * MINUTE_MS);
  ward.warden().orders.approve(ward.warden().view.approvals()[0]!.id);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(ward.warden().view.approvals()).toMatchObject([{ node, request: { kind: "reboot", force: true } }]);
  await ward.stop();
});

test("a policy that comes to be in force while a step waits for a person needs the person no more", async () => {
  const ward = await startWard({ rules: rulesOf([approving]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  await ward.restart({ rules: rulesOf([rebootOffline()]) });
  await ward.pass(20 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ state: "lapsed" }, { outcome: "verified" }]);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});
