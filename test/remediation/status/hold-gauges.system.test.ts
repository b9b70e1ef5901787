import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import {
  listsOnlySettings,
  onePerRegion,
  type QuietNetwork,
  startQuietNetwork,
} from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits, withoutRetries } from "../../harness/policies.ts";

/** Returns the hours of the policy's longest hold, and the held nodes by reason. */
async function holdGauges(network: QuietNetwork) {
  const page = await network.daemon.metrics.render("text");
  const [, seconds] = /^proxywarden_longest_hold_seconds\{policy="reboot-offline"\} (\S+)$/m.exec(page)!;
  const nodes = [...page.matchAll(/^proxywarden_held_nodes\{reason="(\w+)"\} ([1-9]\d*)$/gm)];
  return {
    hours: Math.round((Number(seconds) * 1_000) / (HOUR_MS / 4)) / 4,
    nodes: Object.fromEntries(nodes.map(([, reason, count]) => [reason, Number(count)])),
  };
}

const noActions = { ...withoutLimits, maxActions: { amount: 0, perMs: HOUR_MS } };

test("held nodes count by reason, and the longest hold grows until it ends", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], noActions) });
  expect(await holdGauges(network)).toEqual({ hours: 0, nodes: {} });
  const [first, second] = onePerRegion(network, 2);
  network.failNode(first!);
  await network.advance(HOUR_MS);
  network.failNode(second!);
  await network.advance(HOUR_MS);
  expect(await holdGauges(network)).toEqual({ hours: 2, nodes: { max_actions: 2 } });
  await network.restart({ downMs: HOUR_MS });
  await network.advance(10 * MINUTE_MS);
  expect((await holdGauges(network)).hours).toBeGreaterThanOrEqual(3);
  await network.reload({ config: remediationConfig([rebootOffline()], withoutLimits) });
  await network.advance(40 * MINUTE_MS);
  expect(await holdGauges(network)).toEqual({ hours: 0, nodes: {} });
});

test("a given-up node counts by reason, but not as the longest hold", async () => {
  const policy = rebootOffline({ steps: [steps.reboot], retry: withoutRetries });
  const network = await startQuietNetwork({ config: remediationConfig([policy], withoutLimits) });
  network.failNode(network.nodes()[0]!, "operator");
  await network.advance(HOUR_MS);
  expect(await holdGauges(network)).toEqual({ hours: 0, nodes: { retry_limit: 1 } });
});

test("a node that fails again right after it was healed is held, although no episode was given up", async () => {
  const policy = rebootOffline({ steps: [steps.reboot], retry: withoutRetries });
  const network = await startQuietNetwork({ config: remediationConfig([policy], withoutLimits) });
  const node = network.nodes()[0]!;
  network.failNode(node);
  await network.advance(HOUR_MS);
  expect(network.episodes()).toMatchObject([{ node, state: "healed" }]);
  network.failNode(node, "operator");
  await network.advance(2 * HOUR_MS);
  expect(await holdGauges(network)).toEqual({ hours: 2, nodes: { retry_limit: 1 } });
});

test("a node in our quarantine and a dry run are not held", async () => {
  const quarantining = rebootOffline({ steps: [steps.quarantine] });
  const other = rebootOffline({ name: "other", mode: "dry_run" });
  const network = await startQuietNetwork({ config: remediationConfig([quarantining, other], withoutLimits) });
  network.failNode(network.nodes()[0]!, "operator");
  await network.advance(HOUR_MS);
  expect(await holdGauges(network)).toEqual({ hours: 0, nodes: {} });
});

test("the nodes on which a policy can't be evaluated are shown", async () => {
  const never = rebootOffline({ when: "ratio(node.active_sessions, 0) > 1.0" });
  const network = await startQuietNetwork({ config: remediationConfig([never]) });
  await network.advance(10 * MINUTE_MS);
  const nodes = network.nodes().length;
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ pending: 0, firing: 0, unknown: nodes }]);
  const text = await network.daemon.metrics.render("text");
  for (const gauge of ["proxywarden_policy_matched_nodes", "proxywarden_policy_unknown_nodes"])
    expect(text).toContain(`\n${gauge}{policy="reboot-offline"} ${nodes}\n`);
});

test("a node whose timer counts nothing, because walks are rarer than max_age, is shown", async () => {
  const nodes = { kind: "every", intervalMs: 3 * MINUTE_MS } as const;
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ maxAgeMs: 2 * MINUTE_MS })]),
    settings: { schedules: { ...listsOnlySettings.schedules!, nodes } },
    warmUpMs: 10 * MINUTE_MS,
  });
  network.failNode(network.nodes()[0]!);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ pending: 1, firing: 0, unknown: 1 }]);
  await network.reload({ config: remediationConfig([rebootOffline()]) });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(1);
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ pending: 0, firing: 0, unknown: 0 }]);
});
