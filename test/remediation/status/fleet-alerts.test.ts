import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";
import { courses, heldBy, told, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard, type WardRun } from "../../harness/quiet-network.ts";

/** Storms alone: neither the breaker nor an incident holds anybody. */
const windy = {
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;

/** Nodes fall ill, and recover by themselves after a while. */
function blow(ward: WardRun, nodes: readonly string[], minutes: number): void {
  const healAt = ward.daemon.clock.monotonic() + START_MS + minutes * MINUTE_MS;
  for (const node of nodes) ward.people.fallIll(node, { ailment: "outage", cure: "time", healAt });
}

test("a storm: 30 % of the fleet are offline, nobody is touched, and a cool-down follows", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], windy) });
  const [node] = ward.nodes("us-east").slice(-1);
  ward.fell(node!);
  blow(ward, ward.nodes().slice(0, 18), 40);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["storm"]);
  expect(told(ward, "storm")).toMatchObject([{ severity: "critical", endsAt: null }]);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["storm_cooldown"]);
  expect(ward.postCount()).toBe(0);
  await ward.pass(30 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("nodes count towards a storm as soon as they are offline, whatever the policies wait for", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], windy) });
  const [node] = ward.nodes("us-east").slice(-1);
  ward.fell(node!);
  await ward.pass(4 * MINUTE_MS);
  blow(ward, ward.nodes().slice(0, 18), 60);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(heldBy(ward)).toContain("storm");
  await ward.stop();
});

test("a new breach ends the cool-down: it is the same storm, told once, and it outlives a restart", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], windy) });
  const [node] = ward.nodes("us-east").slice(-1);
  ward.fell(node!);
  blow(ward, ward.nodes().slice(0, 18), 15);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["storm_cooldown"]);
  blow(ward, ward.nodes().slice(0, 18), 15);
  await ward.pass(5 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["storm"]);
  ward.kill();
  await ward.restart({ downMs: 15 * MINUTE_MS });
  await ward.pass(5 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["storm_cooldown"]);
  expect(ward.postCount()).toBe(0);
  expect(new Set(told(ward, "storm").map(({ key }) => key)).size).toBe(1);
  await ward.stop();
});

test("nodes under our hand count as unhealthy: healing does not hide a storm", async () => {
  const rules = rulesOf([rebootOffline({ steps: [steps.quarantine] })], {
    ...windy,
    canary: false,
    maxUnhealthy: { share: 0.1 },
    maxDisrupted: { share: 1, amount: 100 },
    maxActions: { amount: 100, perMs: HOUR_MS },
  });
  const ward = await startWard({ rules });
  const ill = oneOfEach(ward, 8);
  for (const node of ill) {
    ward.fell(node, "person");
    await ward.pass(8 * MINUTE_MS);
  }
  // Six of 60 are 10 %: with the seventh it is a storm, though all the others are in quarantine.
  expect(touched(ward)).toHaveLength(6);
  expect(ward.reasons(ill[7]!)).toEqual(["storm"]);
  await ward.stop();
});

test("a region that went dark is not touched while its nodes come back one by one, and nothing is done twice over", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  for (const [index, node] of ward.nodes("ap-southeast").entries()) blow(ward, [node], 30 + 4 * index);
  await ward.pass(90 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(heldBy(ward)).toEqual(["correlated"]);
  expect(told(ward, "incident")).toMatchObject([
    { region: "ap-southeast", endsAt: null },
    { region: "ap-southeast", endsAt: expect.any(Number) },
  ]);
  await ward.stop();
});

test("what is left of an incident after its cool-down is healed node by node, and a restart makes that no shorter", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [left, ...others] = ward.nodes("ap-southeast");
  ward.fell(left!);
  blow(ward, others, 20);
  await ward.pass(35 * MINUTE_MS);
  ward.kill();
  await ward.restart();
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(left!)).toEqual(["correlated"]);
  await ward.pass(30 * MINUTE_MS);
  expect(touched(ward)).toEqual([left]);
  await ward.stop();
});

test("an incident outlives a restart", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "region_dark", region: "ap-southeast" });
  await ward.pass(10 * MINUTE_MS);
  ward.kill();
  await ward.restart();
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(ward.nodes("ap-southeast")[0]!)).toEqual(["correlated"]);
  await ward.stop();
});

test("nodes of one region that fall ill far apart from each other are no incident", async () => {
  const loose = { maxDisruptedPer: { region: null, country: null } };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], loose) });
  for (const node of ward.nodes("us-west").slice(0, 6)) {
    ward.fell(node);
    await ward.pass(8 * MINUTE_MS);
  }
  await ward.pass(10 * MINUTE_MS);
  expect(touched(ward).length).toBeGreaterThan(3);
  expect(heldBy(ward)).not.toContain("correlated");
  expect(courses(ward)).not.toContain("given_up");
  await ward.stop();
});
