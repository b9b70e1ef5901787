import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { courses, heldBy, told, touched } from "../../harness/action-lines.ts";
import { free, rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard, type WardRun } from "../../harness/quiet-network.ts";

const fellAll = (ward: WardRun, nodes: readonly string[]) => {
  for (const node of nodes) ward.fell(node, "person");
};

test("max_in_flight: no more are sent than may be unverified at once", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { ...free, maxInFlight: 3 }) });
  const ill = oneOfEach(ward, 6);
  fellAll(ward, ill);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(3);
  expect(ward.warden().view.status().inFlight).toBe(3);
  expect(ward.reasons(ill[5]!)).toEqual(["in_flight"]);
  await ward.stop();
});

/** A policy that quarantines some nodes that are online. */
const quarantineOnline = (nodes: readonly string[]) =>
  rebootOffline({
    match: `node.id in ${JSON.stringify(nodes)}`,
    when: 'node.status == "online"',
    steps: [steps.quarantine],
  });

test("max_disrupted counts nodes that are in a quarantine of ours, for as long as it lasts", async () => {
  const ward = await startWard({ rules: rulesOf([]) });
  const four = oneOfEach(ward, 4);
  await ward.reload({
    rules: rulesOf([quarantineOnline(four)], { ...free, maxDisrupted: { share: 1, amount: 2 } }),
  });
  await ward.pass(HOUR_MS);
  expect(courses(ward).toSorted()).toEqual(["firing", "firing", "quarantined", "quarantined"]);
  expect(heldBy(ward)).toEqual(["disrupted"]);
  await ward.stop();
});

test("a node that was offline before we quarantined it is not disrupted: a curable node of its region is healed", async () => {
  const rule = rebootOffline({ steps: [steps.reboot, { ...steps.quarantine, durationMs: 24 * HOUR_MS }] });
  const ward = await startWard({ rules: rulesOf([rule]) });
  const [dead, curable] = ward.nodes("us-east");
  ward.fell(dead!, "person");
  await ward.pass(HOUR_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  ward.fell(curable!);
  const before = ward.daemon.clock.monotonic();
  await ward.passUntil(() => ward.status(curable!) === "rebooting");
  expect(ward.daemon.clock.monotonic() - before).toBeLessThan(15 * MINUTE_MS);
  await ward.pass(30 * MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined", "healed"]);
  await ward.stop();
});

test("max_disrupted_per: of one region only so many are under our hand", async () => {
  const ward = await startWard({ rules: rulesOf([]) });
  const nodes = [...ward.nodes("us-east").slice(0, 3), ward.nodes("eu-west")[0]!];
  const limits = { ...free, maxDisruptedPer: { region: 2, country: null } };
  await ward.reload({ rules: rulesOf([quarantineOnline(nodes)], limits) });
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(3);
  expect(touched(ward)).toContain(nodes[3]);
  expect(heldBy(ward)).toEqual(["disrupted_domain"]);
  await ward.stop();
});

test("min_online: an online node is not taken out where too few would stay, though several are decided on at once", async () => {
  // Of three nodes two are to stay; our records of the first are still those of an online node as the second's turn comes.
  const pair = 'node.name in ["mad-0014", "mad-0063"]';
  const scenario = { nodes: 120 };
  const policy = rebootOffline({ match: pair, when: "node.uptime_hours >= 0", steps: [steps.quarantine] });
  const rules = rulesOf([policy], { ...free, minOnlinePer: { region: 2, country: null } });
  const ward = await startWard({ rules, scenario });
  await ward.pass(20 * MINUTE_MS);
  expect(ward.nodes("eu-south").map(ward.status).toSorted()).toEqual(["online", "online", "quarantined"]);
  expect(heldBy(ward)).toEqual(["min_online"]);
  await ward.stop();
});

test("min_online is about capacity: a node that is offline takes none away", async () => {
  const ward = await startWard({
    rules: rulesOf([rebootOffline()], { ...free, minOnlinePer: { region: 3, country: null } }),
  });
  const [node] = ward.nodes("eu-south");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("max_actions counts over a restart: a crash loop does not refill it", async () => {
  const ward = await startWard({
    rules: rulesOf([rebootOffline()], { ...free, maxActions: { amount: 2, perMs: HOUR_MS } }),
  });
  const ill = oneOfEach(ward, 4);
  fellAll(ward, ill);
  await ward.pass(8 * MINUTE_MS);
  for (let crash = 0; crash < 3; crash++) {
    ward.kill();
    await ward.restart();
    await ward.pass(8 * MINUTE_MS);
  }
  expect(ward.postCount()).toBe(2);
  expect(ward.reasons(ill[3]!)).toEqual(["max_actions"]);
  await ward.stop();
});

test("cooldown: between two episodes of one node some time passes, whichever policies they are of, also over a restart", async () => {
  const policies = [
    rebootOffline(),
    rebootOffline({
      name: "other",
      when: 'node.status == "offline" && node.uptime_hours < 1000000',
      forMs: 10 * MINUTE_MS,
    }),
  ];
  const ward = await startWard({ rules: rulesOf(policies, { cooldownMs: 2 * HOUR_MS }) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(30 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  ward.fell(node!);
  await ward.restart();
  await ward.pass(HOUR_MS);
  expect(ward.reasons(node!)).toEqual(["cooldown"]);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.pass(HOUR_MS);
  expect(courses(ward)).toHaveLength(2);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

test("two policies on one node: the first in order has it, and the other says so", async () => {
  const policies = [
    rebootOffline({ name: "second-to-fire", forMs: 5 * MINUTE_MS }),
    rebootOffline({ name: "also", forMs: 5 * MINUTE_MS }),
  ];
  const ward = await startWard({ rules: rulesOf(policies) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ policy: "second-to-fire", state: "healed" }]);
  expect(ward.decisions().filter(({ policy }) => policy === "also")[0]!.blockers).toMatchObject([
    { reason: "other_episode" },
  ]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("canary: under a changed policy the first action is verified before a second is sent, also after a restart", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { ...free, canary: true }) });
  const [first, second, third] = oneOfEach(ward, 3);
  for (const node of [first!, second!]) ward.fell(node);
  await ward.pass(7 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(heldBy(ward)).toEqual(["canary"]);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.postCount()).toBe(2);
  // It is proven now, and stays so; another text is to be proven anew.
  await ward.restart();
  await ward.pass(3 * MINUTE_MS);
  expect(ward.warden().view.policies()).toMatchObject([{ proven: true }]);
  await ward.restart({ rules: rulesOf([rebootOffline({ steps: [steps.reboot] })], { ...free, canary: true }) });
  expect(ward.warden().view.policies()).toMatchObject([{ proven: false }]);
  ward.fell(third!);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.warden().view.policies()).toMatchObject([{ proven: true }]);
  await ward.stop();
});

test("efficacy: a policy that heals too little falls back to dry_run, durably, until its text changes", async () => {
  const efficacy = { window: 3, minSuccess: 0.5 };
  const rules = rulesOf([rebootOffline({ steps: [steps.reboot] })], { ...free, efficacy });
  const ward = await startWard({ rules });
  const ill = oneOfEach(ward, 6);
  fellAll(ward, ill.slice(0, 3));
  await ward.pass(20 * MINUTE_MS);
  const real = () => ward.actions().filter(({ shadow }) => !shadow);
  expect(real().map(({ outcome }) => outcome)).toEqual(["ineffective", "ineffective", "ineffective"]);
  expect(told(ward, "efficacy")).toHaveLength(1);
  expect(ward.warden().view.policies()).toMatchObject([{ mode: "dry_run", fallen: true }]);
  ward.kill();
  await ward.restart();
  ward.fell(ill[3]!);
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(3);
  expect(ward.actions().at(-1)).toMatchObject({ shadow: true, outcome: "dry_run" });
  const changed = rebootOffline({ steps: [steps.reboot], clearForMs: 11 * MINUTE_MS });
  await ward.restart({ rules: rulesOf([changed], { ...free, efficacy }) });
  await ward.pass(20 * MINUTE_MS);
  expect(ward.warden().view.policies()).toMatchObject([{ mode: "enforce", fallen: false }]);
  expect(touched(ward)).toContain(ill[3]);
  await ward.stop();
});

test("efficacy: a policy that heals goes on", async () => {
  const rules = rulesOf([rebootOffline()], { ...free, efficacy: { window: 3, minSuccess: 0.5 } });
  const ward = await startWard({ rules });
  for (const node of oneOfEach(ward, 5)) ward.fell(node);
  await ward.pass(40 * MINUTE_MS);
  expect(new Set(courses(ward))).toEqual(new Set(["healed"]));
  expect(ward.warden().view.policies()).toMatchObject([{ mode: "enforce", fallen: false }]);
  await ward.stop();
});

test("the breaker opens when too many nodes fire within its time, one by one as well, and is told", async () => {
  const rules = rulesOf([rebootOffline({ steps: [steps.notify] })], {
    ...free,
    breaker: { share: 0, amount: 4, withinMs: 2 * HOUR_MS },
  });
  const ward = await startWard({ rules });
  for (const node of oneOfEach(ward, 6)) {
    ward.fell(node, "person");
    await ward.pass(12 * MINUTE_MS);
  }
  expect(ward.warden().view.status().breaker).toMatchObject({ nodes: 5 });
  expect(told(ward, "breaker")).toHaveLength(1);
  expect(ward.warden().orders.resetBreaker()).toMatchObject({ ok: true });
  expect(ward.warden().orders.resetBreaker()).toMatchObject({ ok: false, error: { kind: "conflict" } });
  await ward.stop();
});
