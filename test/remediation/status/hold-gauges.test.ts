import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { free, onceOnly, rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard, type WardRun } from "../../harness/quiet-network.ts";

/** Hours of the longest hold of the policy, and held nodes by reason. */
async function held(ward: WardRun) {
  const page = await ward.daemon.metrics.render("text");
  const [, seconds] = /^proxywarden_longest_hold_seconds\{policy="reboot-offline"\} (\S+)$/m.exec(page)!;
  const nodes = [...page.matchAll(/^proxywarden_held_nodes\{reason="(\w+)"\} ([1-9]\d*)$/gm)];
  return {
    hours: Math.round((Number(seconds) * 1_000) / (HOUR_MS / 4)) / 4,
    nodes: Object.fromEntries(nodes.map(([, reason, count]) => [reason, Number(count)])),
  };
}

const noActions = { ...free, maxActions: { amount: 0, perMs: HOUR_MS } };

test("nodes that a limit holds count by reason, and the longest hold grows until it ends", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], noActions) });
  expect(await held(ward)).toEqual({ hours: 0, nodes: {} });
  const [first, second] = oneOfEach(ward, 2);
  ward.fell(first!);
  await ward.pass(2 * HOUR_MS);
  ward.fell(second!);
  await ward.pass(HOUR_MS);
  expect(await held(ward)).toEqual({ hours: 3, nodes: { max_actions: 2 } });
  await ward.restart({ downMs: HOUR_MS });
  await ward.pass(10 * MINUTE_MS);
  expect((await held(ward)).hours).toBeGreaterThanOrEqual(4);
  await ward.reload({ rules: rulesOf([rebootOffline()], free) });
  await ward.pass(HOUR_MS);
  expect(await held(ward)).toEqual({ hours: 0, nodes: {} });
  await ward.stop();
});

test("a node that was given up counts by reason, and not as a hold that lasts", async () => {
  const policy = rebootOffline({ steps: [steps.reboot], retry: onceOnly });
  const ward = await startWard({ rules: rulesOf([policy], free) });
  ward.fell(ward.nodes()[0]!, "person");
  await ward.pass(3 * HOUR_MS);
  expect(await held(ward)).toEqual({ hours: 0, nodes: { retry_limit: 1 } });
  await ward.stop();
});

test("a node in our quarantine and a dry run are not held", async () => {
  const quarantining = rebootOffline({ steps: [steps.quarantine] });
  const other = rebootOffline({ name: "other", mode: "dry_run" });
  const ward = await startWard({ rules: rulesOf([quarantining, other], free) });
  ward.fell(ward.nodes()[0]!, "person");
  await ward.pass(HOUR_MS);
  expect(await held(ward)).toEqual({ hours: 0, nodes: {} });
  await ward.stop();
});
