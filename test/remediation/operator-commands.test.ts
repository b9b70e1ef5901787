import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { rebootOffline, rulesOf } from "../harness/policies.ts";
import { startWard, type WardRun } from "../harness/quiet-network.ts";

const journalled = (ward: WardRun, node?: string) =>
  ward
    .warden()
    .view.orders({ limit: 100, ...(node === undefined ? {} : { node }) })
    .toReversed()
    .map(({ order, operator, node: about, action }) => [order, operator, about, action]);

test("every order that was carried out is journalled with the operator's name, and survives a restart", async () => {
  const safety = { breaker: { share: 0, amount: 0, withinMs: HOUR_MS } };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], safety) });
  const [ill, held] = ward.nodes();
  ward.people.fallIll(ill!, { ailment: "outage", cure: "person" });
  await ward.pass(10 * MINUTE_MS);
  const alice = ward.warden().orders.of("alice");
  alice.pause("a release");
  ward.warden().orders.of("bob").resume();
  alice.hold(held!, "its disk is swapped");
  alice.release(held!);
  alice.resetBreaker();
  alice.acceptInventory();
  alice.noteReload(["a.yaml:1:1: wrong", "a.yaml:2:1: wrong too"]);
  ward.warden().orders.noteReload([]);
  // An order that changes nothing is not one that was carried out.
  expect(alice.release(held!).ok).toBe(false);
  const expected = [
    ["pause", "alice", null, null],
    ["resume", "bob", null, null],
    ["hold", "alice", held, null],
    ["release", "alice", held, null],
    ["reset-breaker", "alice", null, null],
    ["accept-inventory", "alice", null, null],
    ["reload", "alice", null, null],
    ["reload", null, null, null],
  ];
  expect(journalled(ward)).toEqual(expected);
  const [last, refused] = ward.warden().view.orders({ limit: 2 });
  expect(last).toMatchObject({ detail: "the new configuration is in force" });
  expect(refused).toMatchObject({ detail: "refused: a.yaml:1:1: wrong (and 1 more problems)" });
  await ward.restart();
  expect(journalled(ward)).toEqual(expected);
  expect(
    ward
      .warden()
      .view.explain(held!)
      .orders.map(({ order }) => order),
  ).toEqual(["release", "hold"]);
  await ward.stop();
});

test("an action names the operator who approved it, or who rejected it, and when", async () => {
  const rules = rulesOf([rebootOffline({ mode: "approve" })], { mode: "approve" });
  const ward = await startWard({ rules });
  const [node] = ward.nodes();
  ward.people.fallIll(node!, { ailment: "outage", cure: "reboot" });
  await ward.pass(10 * MINUTE_MS);
  const [asked] = ward.warden().view.approvals();
  const at = ward.daemon.clock.now();
  ward.warden().orders.of("alice").approve(asked!.id);
  await ward.pass(10 * MINUTE_MS);
  const actionNow = () =>
    ward
      .warden()
      .view.explain(node!)
      .actions.find(({ id }) => id === asked!.id);
  expect(actionNow()).toMatchObject({ state: "ended", answered: { operator: "alice", at } });
  expect(journalled(ward, node!)).toEqual([["approve", "alice", node, asked!.id]]);
  await ward.stop();

  const other = await startWard({ rules });
  other.people.fallIll(node!, { ailment: "outage", cure: "reboot" });
  await other.pass(10 * MINUTE_MS);
  const [refused] = other.warden().view.approvals();
  other.warden().orders.of("bob").reject(refused!.id, "it is being moved");
  expect(other.warden().view.explain(node!).actions[0]).toMatchObject({
    ...{ state: "rejected", answered: { operator: "bob" } },
    detail: `bob rejected ${refused!.id}: it is being moved`,
  });
  await other.stop();
});

test("a pause and a hold name their operator where they hold a node", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes();
  ward.people.fallIll(node!, { ailment: "outage", cure: "reboot" });
  ward.warden().orders.of("alice").pause("a release");
  ward.warden().orders.of("bob").hold(node!, "its disk is swapped");
  await ward.pass(10 * MINUTE_MS);
  const { holds, policies } = ward.warden().view.explain(node!);
  expect(holds).toMatchObject([{ operator: "bob", reason: "bob holds it: its disk is swapped" }]);
  const details = policies.flatMap(({ blockers }) => blockers.map(({ reason, detail }) => `${reason}: ${detail}`));
  expect(details).toContainEqual(expect.stringMatching(/^paused: .* by alice: a release$/));
  expect(details).toContainEqual(expect.stringMatching(/^held: .*bob holds it: its disk is swapped/));
  expect(ward.warden().view.status().paused).toMatchObject({ operator: "alice", reason: "a release" });
  await ward.stop();
});
