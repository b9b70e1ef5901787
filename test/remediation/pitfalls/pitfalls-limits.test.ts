import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { courses, deeds, told, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard } from "../../harness/quiet-network.ts";

test("pain 4: every kind of action counts against every limit, the quarantine as well as the reboot (c7n#3477, #4347)", async () => {
  const policies = [
    rebootOffline({ name: "a", match: 'node.region == "us-east"', steps: [steps.disconnect] }),
    rebootOffline({ name: "b", match: 'node.region == "eu-west"', steps: [steps.quarantine] }),
    rebootOffline({ name: "c", match: 'node.region == "us-west"' }),
  ];
  const ward = await startWard({ rules: rulesOf(policies, { maxActions: { amount: 2, perMs: HOUR_MS } }) });
  for (const region of ["us-east", "eu-west", "us-west"]) ward.fell(ward.nodes(region)[0]!);
  await ward.pass(50 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["disconnect: ineffective", "quarantine: verified"]);
  expect(ward.reasons(ward.nodes("us-west")[0]!)).toEqual(["max_actions"]);
  await ward.stop();
});

test("pain 4: the ceiling over all policies can't be passed by any of them (c7n#9153)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ mode: "enforce" })], { mode: "dry_run" }) });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.actions()).toMatchObject([
    { shadow: true, outcome: "dry_run" },
    { shadow: true, outcome: "dry_run" },
  ]);
  await ward.stop();
});

test("pain 7: a node that nothing heals is not rebooted without end (NVSentinel#1543, CAPI#7353)", async () => {
  const retry = { episodes: 2, everyMs: 30 * MINUTE_MS, forgetAfterMs: 24 * HOUR_MS };
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.reboot], retry })]) });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(3 * HOUR_MS);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

test("pain 7: a node that a reboot heals for a while only is not rebooted without end either (NVSentinel#1543)", async () => {
  const retry = { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.reboot], retry })]) });
  const [node] = ward.nodes("us-east");
  for (let time = 0; time < 3; time++) {
    ward.fell(node!);
    await ward.pass(HOUR_MS);
  }
  expect(courses(ward)).toEqual(["healed", "healed"]);
  expect(ward.postCount()).toBe(2);
  expect(ward.reasons(node!)).toEqual(["retry_limit"]);
  await ward.stop();
});

test("pain 7: with no episode allowed nothing is done at all, not even once (CAPI's retryLimit 0)", async () => {
  const retry = { episodes: 0, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
  const ward = await startWard({ rules: rulesOf([rebootOffline({ retry })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toEqual(["retry_limit"]);
  await ward.stop();
});

test("pain 10: limits hold from the first action on, however many nodes are ill as one looks for the first time (draino#89)", async () => {
  const loose = {
    maxInFlight: 10,
    maxDisrupted: { share: 1, amount: 2 },
    maxDisruptedPer: { region: null, country: null },
    canary: false,
  };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], loose), settleMs: 0 });
  await ward.pass(MINUTE_MS);
  const ill = oneOfEach(ward, 8);
  for (const node of ill) ward.fell(node, "person");
  await ward.pass(10 * MINUTE_MS);
  // All of them fire in one and the same look.
  expect(ward.postCount()).toBe(2);
  expect(ward.reasons(ill[7]!)).toEqual(["disrupted"]);
  await ward.stop();
});

test("pain 10: no more than max_actions are sent in an hour, though all else would allow it (draino#89)", async () => {
  const loose = {
    maxInFlight: 10,
    maxDisrupted: { share: 1, amount: 10 },
    maxActions: { amount: 3, perMs: HOUR_MS },
    canary: false,
  };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], loose) });
  const ill = oneOfEach(ward, 8);
  for (const node of ill) ward.fell(node);
  await ward.pass(50 * MINUTE_MS);
  expect(ward.postCount()).toBe(3);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(6);
  await ward.stop();
});

test("pain 12: a fleet of three is not frozen by percentages: its sick node is healed (karpenter#2134)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]), scenario: { nodes: 3, sessions: 3 } });
  const [node] = ward.nodes();
  ward.fell(node!);
  await ward.pass(30 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("pain 12: whatever is refused is seen: in the decision, in the metrics, and in what explains the node (CAPI#5451, kured#563)", async () => {
  const rules = rulesOf([rebootOffline()], { maxDisrupted: { share: 0, amount: 5 }, maxInFlight: 0 });
  const ward = await startWard({ rules });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["in_flight", "disrupted"]);
  expect(ward.decisions()).toMatchObject([
    { node, verdict: "hold", blockers: [{ reason: "in_flight" }, { reason: "disrupted" }] },
  ]);
  const page = await ward.daemon.metrics.render("text");
  for (const reason of ["in_flight", "disrupted"]) {
    expect(page).toContain(
      `proxywarden_decisions_total{policy="reboot-offline",verdict="hold",reason="${reason}"} 1\n`,
    );
  }
  expect(page).toContain('proxywarden_limit_nodes{limit="max_disrupted"} 0\n');
  await ward.stop();
});

const eager = { breaker: { share: 0, amount: 2, withinMs: HOUR_MS } };

test("pain 14: an open breaker outlives restarts, until a person resets it (NVSentinel)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], eager) });
  const ill = oneOfEach(ward, 3);
  for (const node of ill) ward.fell(node);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.restart({ downMs: 3 * HOUR_MS });
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(ill[0]!)).toEqual(["breaker"]);
  expect(ward.warden().orders.resetBreaker()).toMatchObject({ ok: true });
  await ward.pass(HOUR_MS);
  expect(touched(ward).toSorted()).toEqual([...ill].toSorted());
  expect(told(ward, "breaker").at(-1)).toMatchObject({ endsAt: expect.any(Number) });
  await ward.stop();
});

test("pain 14: what the breaker has counted outlives a restart, too: a crash does not empty it (NVSentinel)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { ...eager, maxInFlight: 0 }) });
  const [first, second, third] = oneOfEach(ward, 3);
  ward.fell(first!);
  ward.fell(second!);
  await ward.pass(10 * MINUTE_MS);
  ward.kill();
  await ward.restart();
  ward.fell(third!);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.warden().view.status().breaker).toMatchObject({ nodes: 3 });
  await ward.stop();
});

test("pain 14: a breaker of zero is one that opens at the first node, not one that is off (NVSentinel)", async () => {
  const none = { breaker: { share: 0, amount: 0, withinMs: HOUR_MS } };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], none) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toEqual(["breaker"]);
  expect(ward.warden().view.status().breaker).toMatchObject({ nodes: 1 });
  await ward.stop();
});
