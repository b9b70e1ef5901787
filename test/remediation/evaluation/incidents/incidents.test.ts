import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import {
  listsAndDetailsSettings,
  listsOnlySettings,
  type QuietNetwork,
  startQuietNetwork,
} from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";
import { holdReasonsOf, nodesActedOn, notificationsOf } from "../../../harness/remediation-results.ts";
import { changingRecords } from "../../../harness/simulator/changed-responses.ts";

const scenario = { nodes: 60 };
const REGION = "us-east";
/** The number of nodes that makes an incident; their region has many more. */
const incidentNodes = (network: QuietNetwork): readonly string[] => network.nodes(REGION).slice(0, 5);

/** A policy whose condition holds for no node. */
const idle = rebootOffline({ name: "idle", when: 'node.status == "maintenance"' });

/** Five nodes of one region go offline, ten minutes apart. */
async function failSeparately(network: QuietNetwork): Promise<void> {
  for (const node of incidentNodes(network)) {
    network.failNode(node);
    await network.advance(10 * MINUTE_MS);
  }
}

async function expectHealed(network: QuietNetwork): Promise<void> {
  await network.advance(1.5 * HOUR_MS);
  expect(nodesActedOn(network).toSorted()).toEqual([...incidentNodes(network)].toSorted());
  expect(notificationsOf(network, "incident")).toEqual([]);
  expect(holdReasonsOf(network)).not.toContain("correlated");
}

test("nodes that were unhealthy at the first evaluation are not an incident", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]), scenario, warmUpMs: 0 });
  for (const node of incidentNodes(network)) network.failNode(node);
  await expectHealed(network);
});

/** So that only the correlated failure holds a region. */
const withoutOtherLimits = { maxUnhealthy: { share: 1 }, breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS } };

test("nodes that are offline at the first evaluation are an incident if they are most nodes of their region", async () => {
  const config = remediationConfig([rebootOffline()], withoutOtherLimits);
  const network = await startQuietNetwork({ config, scenario, warmUpMs: 0 });
  const region = network.nodes(REGION);
  for (const node of region) network.failNode(node);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(region[0]!)).toEqual(["correlated"]);
});

test("a region that is down when trust returns is an incident, although the first walk shows only some of its nodes", async () => {
  const config = remediationConfig([rebootOffline()], withoutOtherLimits);
  const network = await startQuietNetwork({ config, scenario, settings: { ...listsOnlySettings, pageLimit: 6 } });
  const region = network.nodes(REGION);
  network.setFault({ kind: "empty_list" });
  await network.advance(MINUTE_MS);
  for (const node of region) network.failNode(node);
  network.setFaults([5, 6, 7, 8, 9, 10].map((page) => ({ fault: { kind: "reset" }, match: `/v1/nodes?page=${page}` })));
  await network.advance(MINUTE_MS);
  expect(network.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ isAborted: true, seenNodes: 24 });
  network.setFault(null);
  await network.advance(2 * HOUR_MS);
  expect(network.postCount()).toBe(0);
  for (const node of region) expect(network.holdReasons(node)).toEqual(["correlated"]);
});

test("nodes that are down when they are first seen belong to an incident of their region that lasts", async () => {
  const config = remediationConfig([rebootOffline({ forMs: 0 })], withoutOtherLimits);
  const network = await startQuietNetwork({ config, scenario, settings: { ...listsOnlySettings, pageLimit: 6 } });
  network.setFault({ kind: "empty_list" });
  await network.advance(MINUTE_MS);
  for (const node of network.nodes(REGION)) network.failNode(node);
  network.setFault({ kind: "reset" }, "/v1/nodes?page=10");
  await network.advance(10 * MINUTE_MS);
  network.setFault(null);
  await network.advance(2 * HOUR_MS);
  expect(network.postCount()).toBe(0);
  for (const node of network.nodes(REGION)) expect(network.holdReasons(node)).toEqual(["correlated"]);
});

test("nodes of a region that meet a condition at the first evaluation, but are online, are not an incident", async () => {
  const config = remediationConfig([rebootOffline({ when: `node.region == "${REGION}"` })], withoutOtherLimits);
  const network = await startQuietNetwork({ config, scenario });
  await network.advance(HOUR_MS);
  expect(nodesActedOn(network).length).toBeGreaterThan(0);
});

test("nodes that are unhealthy when a condition is edited are not an incident", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([{ ...idle, name: "reboot-offline" }]),
    scenario,
  });
  await failSeparately(network);
  await network.reload({ config: remediationConfig([rebootOffline()]) });
  await expectHealed(network);
});

test("nodes that are unhealthy when a policy is added are not an incident", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([idle]), scenario });
  await failSeparately(network);
  await network.restart({ config: remediationConfig([idle, rebootOffline()]) });
  await expectHealed(network);
});

test("nodes that are unhealthy when trust returns are not an incident", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline({ forMs: HOUR_MS })]), scenario });
  await failSeparately(network);
  network.setFault({ kind: "empty_list" });
  await network.advance(10 * MINUTE_MS);
  network.setFault(null);
  await expectHealed(network);
});

test("nodes whose details are read for the first time are not an incident", async () => {
  const when = 'node.status == "offline" && node.cpu_usage >= 0.0';
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when })]),
    scenario,
    settings: listsAndDetailsSettings,
  });
  await network.restart();
  for (const node of incidentNodes(network)) network.failNode(node);
  await network.advance(40 * MINUTE_MS);
  expect(notificationsOf(network, "incident")).toEqual([]);
});

test("nodes of one region that go offline together after a while with an unknown status are an incident", async () => {
  let areUnreachable = false;
  const isUnreachable = ({ id }: { readonly id?: unknown }) => areUnreachable && affected.includes(String(id));
  const wrapTransport = changingRecords("nodes", (node) =>
    isUnreachable(node) ? { ...node, status: "unreachable" } : node,
  );
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]), scenario, wrapTransport });
  const affected = incidentNodes(network);
  areUnreachable = true;
  await network.advance(20 * MINUTE_MS);
  for (const node of affected) network.failNode(node);
  areUnreachable = false;
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(affected[0]!)).toEqual(["correlated"]);
});

/** A whole region goes offline, and all but five of its nodes come back after an hour. */
async function outage(network: QuietNetwork): Promise<void> {
  const healAt = network.daemon.clock.now() + HOUR_MS;
  for (const node of network.nodes(REGION).slice(5))
    network.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  for (const node of incidentNodes(network)) network.failNode(node);
}

/** Limits without storm and circuit breaker. */
const withoutFailures = {
  maxUnhealthy: { share: 1 },
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
} as const;

test("an incident ends half an hour after most of its nodes came back, and the remaining nodes are healed", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], withoutFailures), scenario });
  await outage(network);
  await network.advance(85 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(incidentNodes(network)[0]!)).toEqual(["correlated"]);
  expect(notificationsOf(network, "incident")).toMatchObject([{ region: REGION, endsAt: null }]);
  await network.advance(2 * HOUR_MS + 30 * MINUTE_MS);
  expect(nodesActedOn(network).toSorted()).toEqual([...incidentNodes(network)].toSorted());
  expect(notificationsOf(network, "incident")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
});

test("an incident whose nodes stay unhealthy ends six hours after the last of them failed, even across a kill", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], withoutFailures),
    scenario: { nodes: 60 },
  });
  for (const node of incidentNodes(network)) network.failNode(node);
  await network.advance(3 * HOUR_MS);
  network.kill();
  await network.restart();
  await network.advance(2 * HOUR_MS + 50 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(incidentNodes(network)[0]!)).toEqual(["correlated"]);
  const explained = network.explain(incidentNodes(network)[0]!);
  expect(explained.policies[0]!.blockers[0]!.detail).toMatch(
    /it ends 30m after .* and no later than 2026-03-01 06:0\d/,
  );
  await network.advance(2 * HOUR_MS + 30 * MINUTE_MS);
  expect(nodesActedOn(network).toSorted()).toEqual([...incidentNodes(network)].toSorted());
});

test("onsets before and after a kill make one incident", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: 10 * MINUTE_MS })]),
    scenario,
  });
  for (const node of incidentNodes(network).slice(0, 3)) network.failNode(node);
  await network.advance(90_000);
  network.kill();
  await network.restart({ downMs: 1_000 });
  await network.advance(75_000);
  for (const node of incidentNodes(network).slice(3)) network.failNode(node);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(notificationsOf(network, "incident")).toMatchObject([{ region: REGION }]);
});

test("an incident observed in a dry run holds its nodes when the policy is enforced", async () => {
  const config = (mode: "dry_run" | "enforce") => remediationConfig([rebootOffline({ mode })], withoutFailures);
  const network = await startQuietNetwork({ config: config("dry_run"), scenario });
  for (const node of incidentNodes(network)) network.failNode(node);
  await network.advance(HOUR_MS);
  await network.reload({ config: config("enforce") });
  await network.advance(HOUR_MS);
  expect(network.holdReasons(incidentNodes(network)[0]!)).toEqual(["correlated"]);
  expect(network.postCount()).toBe(0);
});

test("an outage of fleet data doesn't end an incident", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: 15 * MINUTE_MS })], withoutFailures),
    scenario,
  });
  for (const node of incidentNodes(network)) network.failNode(node);
  await network.advance(5 * MINUTE_MS);
  network.setFault({ kind: "empty_list" });
  await network.advance(45 * MINUTE_MS);
  network.setFault(null);
  await network.advance(HOUR_MS);
  expect(network.holdReasons(incidentNodes(network)[0]!)).toEqual(["correlated"]);
  expect(network.postCount()).toBe(0);
});

test("nodes of one region that failed together are an incident if a reload comes before their evaluation", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]), scenario });
  for (const node of incidentNodes(network)) network.failNode(node);
  // As if a round of remediation that takes long were in progress.
  network.daemon.collectorManager.setListener(() => {});
  await network.advance(MINUTE_MS);
  await network.reload({});
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(incidentNodes(network)[0]!)).toEqual(["correlated"]);
});

test("a region that fails while a walk fails is an incident, although the data before is older than max_age", async () => {
  const config = remediationConfig([rebootOffline({ maxAgeMs: 90_000 })], withoutOtherLimits);
  const network = await startQuietNetwork({ config, scenario });
  network.setFault({ kind: "reset" });
  await network.advance(MINUTE_MS);
  for (const node of network.nodes(REGION)) network.failNode(node);
  network.setFault(null);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(network.nodes(REGION)[0]!)).toEqual(["correlated"]);
});
