import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { courses, deeds, touched } from "../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../harness/policies.ts";
import { startWard } from "../harness/quiet-network.ts";

const other = { serviceUrl: "https://other.example.net" };

test("timers don't go on at another service: a node of equal id has to be unhealthy for the whole of for", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: 30 * MINUTE_MS })]) });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(25 * MINUTE_MS);
  await ward.restart(other);
  await ward.pass(25 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("an approval of an action at one service is none at another", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ mode: "approve" })], { mode: "approve" }) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  const [asked] = ward.warden().view.approvals();
  ward.warden().orders.pause("a move");
  ward.warden().orders.approve(asked!.id);
  await ward.restart(other);
  ward.warden().orders.resume();
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  const [action] = ward.actions();
  expect(action).toMatchObject({ id: asked!.id, state: "lapsed", detail: expect.stringContaining("base_url changed") });
  expect(courses(ward)).toEqual(["withdrawn", "firing"]);
  expect(ward.notices.filter(({ kind, endsAt }) => kind === "episode" && endsAt !== null)).toHaveLength(1);
  await ward.stop();
});

test("an episode with an action under way ends at another service in doubt, its next step is not taken there, and limits still count it", async () => {
  const rules = rulesOf([rebootOffline()], { maxActions: { amount: 1, perMs: 24 * HOUR_MS } });
  const ward = await startWard({ rules });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.passUntil(() => ward.postCount() === 1);
  await ward.reload(other);
  await ward.pass(HOUR_MS);
  expect(deeds(ward)).toEqual(["reboot: in_doubt"]);
  expect(courses(ward)[0]).toBe("withdrawn");
  expect(ward.postCount()).toBe(1);
  expect(ward.reasons(node!)).toEqual(["max_actions"]);
  await ward.stop();
});

test("back at the first service nothing of the time before goes on: our quarantine there is not ours any more, and is left alone", async () => {
  const ward = await startWard({
    rules: rulesOf([rebootOffline({ steps: [{ ...steps.quarantine, durationMs: DAY_MS }] })]),
  });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(10 * MINUTE_MS);
  expect(ward.status(node!)).toBe("quarantined");
  ward.warden().orders.hold("node_caffe390", "not to be touched");
  await ward.restart(other);
  await ward.pass(10 * MINUTE_MS);
  await ward.restart();
  await ward.pass(2 * HOUR_MS);
  expect(ward.postCount()).toBe(1);
  expect(touched(ward)).toEqual([node]);
  expect(courses(ward)).toEqual(["withdrawn"]);
  // What a person ordered stays, here and there.
  expect(ward.warden().view.explain("node_caffe390").holds).toHaveLength(1);
  await ward.stop();
});

test("the size of one service's inventory is no measure of another's", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  expect(ward.warden().view.status().baseline).toBe(60);
  await ward.restart(other);
  expect(ward.warden().view.status().baseline).toBe(0);
  await ward.stop();
});
