import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { courses, deeds } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

const oneReboot = rulesOf([rebootOffline({ steps: [steps.reboot] })]);
const isProven = (ward: WardRun) => ward.warden().view.policies()[0]!.proven;

test("a node that an operator repairs after our reboot did nothing is not healed by us, and proves no canary", async () => {
  const ward = await startWard({ rules: oneReboot });
  const [node] = ward.nodes("us-east");
  const healAt = ward.daemon.clock.now() + 10 * MINUTE_MS;
  ward.people.fallIll(node!, { ailment: "outage", cure: "person", healAt });
  await ward.pass(12 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(ward.status(node!)).toBe("maintenance");
  await ward.pass(30 * MINUTE_MS);
  expect(ward.status(node!)).toBe("online");
  expect(deeds(ward)).toEqual(["reboot: in_doubt"]);
  expect(ward.actions()).toMatchObject([{ detail: expect.stringContaining("maintenance") }]);
  expect(courses(ward)).toEqual(["cleared"]);
  expect(isProven(ward)).toBe(false);
  await ward.stop();
});

test("a node that an operator quarantines after our reboot is not healed by us when it is freed", async () => {
  const ward = await startWard({ rules: oneReboot });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.passUntil(() => ward.postCount() === 1);
  await ward.pass(MINUTE_MS);
  ward.people.quarantine(node!, ward.daemon.clock.now() + 3 * MINUTE_MS);
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt: ward.daemon.clock.now() });
  await ward.pass(40 * MINUTE_MS);
  expect(ward.status(node!)).toBe("online");
  expect(courses(ward)).toEqual(["cleared"]);
  expect(isProven(ward)).toBe(false);
  await ward.stop();
});
