import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { PolicySpec } from "../../src/config/schema/policy.ts";
import { Inventory } from "../../src/inventory/inventory.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import type { NodeStatus } from "../../src/model/node.ts";
import { silentLog } from "../../src/platform/log.ts";
import { INACTIVE } from "../../src/policy/timer.ts";
import { ExternalActions } from "../../src/remediation/external-actions.ts";
import { ObservedFleet } from "../../src/remediation/observed-fleet.ts";
import { openRemediationState } from "../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultServiceOptions, SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { journalRows } from "../harness/daemon/journal-rows.ts";
import {
  listsAndDetailsSettings,
  listsOnlySettings,
  onePerRegion,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../harness/daemon/quiet-network.ts";
import {
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../harness/policies.ts";
import { holdReasonsOf, nodesActedOn } from "../harness/remediation-results.ts";
import { createSimulatedTransport } from "../harness/simulator/transport.ts";
import { record } from "../inventory/inventory-fixtures.ts";

/** Starts a second daemon on the same service, with its own state. */
async function startSecond({ daemon: { service, clock } }: QuietNetwork, policies: readonly PolicySpec[]) {
  const store = createMemoryStateStore();
  const transport = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const config = remediationConfig(policies);
  const daemon: VirtualDaemon = await startVirtualDaemon({
    config,
    service,
    clock,
    transport,
    store,
    settings: listsOnlySettings,
    seed: 2,
  });
  return { daemon, sentAt: () => journalRows(store, "actions").flatMap(({ sentAt }) => sentAt ?? []) };
}

test("two daemons with separate state don't act on a node while the other verifies an action", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  await network.advance(20_000);
  const second = await startSecond(network, [rebootOffline()]);
  await network.advance(5 * MINUTE_MS);
  network.failNode(network.nodes("us-east")[0]!, "operator");
  await network.advance(2 * HOUR_MS);
  const sent = [
    ...network.actions().map(({ sentAt }) => ({ by: "first", at: sentAt! })),
    ...second.sentAt().map((at) => ({ by: "second", at })),
  ].toSorted((a, b) => a.at - b.at);
  expect(new Set(sent.map(({ by }) => by)).size).toBe(2);
  const gaps = sent.slice(1).flatMap(({ by, at }, index) => (sent[index]!.by === by ? [] : [at - sent[index]!.at]));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(15 * MINUTE_MS);
  await stopVirtualDaemon(second.daemon);
});

const rebootOnline = (match: string) =>
  rebootOffline({ match, when: 'node.status == "online"', steps: [steps.reboot], mode: "approve" });

test("a node whose uptime fell without our reboot is held for 15 minutes, also across a restart", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const [node, other] = network.nodes("us-east");
  const config = remediationConfig([rebootOnline(`node.id in ["${node}", "${other}"]`)]);
  await network.reload({ config });
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["approval"]);
  network.interventions.restart(node!);
  await network.advance(2 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["approval", "ownership"]);
  expect(network.holdReasons(other!)).toEqual(["approval"]);
  await network.restart({ config });
  await network.advance(5 * MINUTE_MS);
  expect(network.holdReasons(node!)).toContain("ownership");
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["approval"]);
});

/** Reboots a node as an operator does, without the daemon. */
async function rebootByOperator({ daemon: { service, clock } }: QuietNetwork, node: string): Promise<void> {
  const headers = { authorization: `Bearer ${SIMULATION_KEY}`, "content-type": "application/json" };
  const request = { method: "POST", path: `/v1/nodes/${node}/reboot`, headers, body: "{}" } as const;
  const transport = createSimulatedTransport(service, clock, { latencyMs: 0 });
  expect(await transport.request(request, new AbortController().signal)).toMatchObject({ value: { status: 200 } });
}

test.each([
  {
    change: "whose uptime fell",
    act: async ({ interventions }: QuietNetwork, node: string) => interventions.restart(node),
    detail: /^ownership: .*its uptime fell from \d+ h to 0 h without a reboot by the daemon/,
  },
  {
    change: "that is rebooting",
    act: rebootByOperator,
    detail: /^ownership: .*it was rebooted, but not by the daemon/,
  },
])("a node $change only in the read before the action is not acted on", async ({ act, detail }) => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const [node] = network.nodes("us-east");
  const when = 'node.status in ["online", "rebooting"]';
  const policy = { ...rebootOnline(`node.id == "${node}"`), when, mode: "enforce" } as const;
  expect(await network.commands().pause("a test")).toMatchObject({ ok: true });
  await network.reload({ config: remediationConfig([policy]) });
  await network.advanceUntil(() => network.holdReasons(node!).length > 0);
  expect(network.holdReasons(node!)).toEqual(["paused"]);
  await act(network, node!);
  await network.commands().resume();
  await network.advance(5 * SECOND_MS);
  expect(network.actions()).toMatchObject([{ state: "withdrawn", detail: expect.stringMatching(detail) }]);
  expect(network.events.filter((event) => event.kind === "request" && event.method === "POST")).toEqual([]);
});

describe.each(["zero", "null"] as const)("if the service states the uptime of offline nodes as %s", (offlineValues) => {
  const start = (rebootStatus: "rebooting" | "offline", config = remediationConfig([rebootOffline()])) =>
    startQuietNetwork({ config, scenario: { service: { ...defaultServiceOptions, offlineValues, rebootStatus } } });

  test("a node that goes offline was not rebooted by others", async () => {
    const network = await start("rebooting");
    const [node] = network.nodes("us-east");
    network.failNode(node!);
    await network.advance(10 * MINUTE_MS);
    expect(holdReasonsOf(network)).toEqual([]);
    expect(nodesActedOn(network)).toEqual([node]);
  });

  test("a reboot by others is recognized once the node is online again", async () => {
    const network = await start("offline", remediationConfig([]));
    const [node] = network.nodes("us-east");
    const policy = { ...rebootOnline(`node.id == "${node}"`), when: 'node.status in ["online", "offline"]' };
    await network.reload({ config: remediationConfig([policy]) });
    await network.advance(10 * MINUTE_MS);
    await rebootByOperator(network, node!);
    await network.advance(MINUTE_MS);
    expect(network.status(node!)).toBe("offline");
    expect(network.holdReasons(node!)).toEqual(["approval"]);
    await network.advance(3 * MINUTE_MS);
    expect(network.status(node!)).toBe("online");
    expect(network.holdReasons(node!)).toEqual(["approval", "ownership"]);
    await network.advance(15 * MINUTE_MS);
    expect(network.holdReasons(node!)).toEqual(["approval"]);
  });
});

test.each(["before", "after"])("a hold by an operator %s a reboot by others keeps its end", async (order) => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const [node] = network.nodes("us-east");
  await network.reload({ config: remediationConfig([rebootOnline(`node.id == "${node}"`)]) });
  await network.advance(10 * MINUTE_MS);
  const holds = () => network.explain(node!).holds.map(({ kind, operator }) => [kind, operator]);
  const hold = () => network.commands("alice").hold(node!, "a test", 5 * MINUTE_MS);
  if (order === "before") await hold();
  network.interventions.restart(node!);
  await network.advance(2 * MINUTE_MS);
  if (order === "after") await hold();
  expect(holds()).toEqual([["held", "alice"]]);
  await network.advance(6 * MINUTE_MS);
  expect(holds()).toEqual([["ownership", undefined]]);
  expect(journalRows(network.store, "operator_commands").at(-1)).toMatchObject({
    detail: "the hold by alice has expired",
  });
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["approval"]);
});

test.each(["rounded", "exact"] as const)(
  "an uptime that is %s in details does not seem to fall in the list",
  async (detailUptime) => {
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline()], withoutLimits),
      scenario: { service: { ...defaultServiceOptions, detailUptime } },
      settings: listsAndDetailsSettings,
    });
    const nodes = onePerRegion(network, 3);
    for (const node of nodes) network.failNode(node);
    await network.advance(40 * MINUTE_MS);
    expect(nodesActedOn(network).toSorted()).toEqual(nodes.toSorted());
    expect(holdReasonsOf(network)).toEqual([]);
  },
);

test("our own reboot does not hold the node as an external action", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    remedy: "forced_reboot",
  });
  await network.advance(HOUR_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  expect(network.decisions().flatMap(({ blockers }) => blockers.map(({ reason }) => reason))).not.toContain(
    "ownership",
  );
  expect(network.episodes()).toMatchObject([{ state: "healed", acted: 2 }]);
});

test("a node that was seen rebooting is held, even if a newer snapshot arrives during the comparison", async () => {
  const clock = createVirtualClock(START_MS);
  const { journal } = createMemoryStateStore();
  const remediationState = await openRemediationState({ journal, clock, log: silentLog, lostReason: null });
  const { records } = remediationState;
  const observed = new ObservedFleet({ serviceTime: (at) => at });
  const nodes = Array.from({ length: 1_000 }, (_, index) => `node_${index}`);
  for (const node of nodes) records.setTimer("policy", node, { ...INACTIVE, state: "firing" });
  // Time passes with each reading of the clock, so that every slice is as short as possible.
  let readings = 0;
  const passing = { ...clock, monotonic: () => clock.monotonic() + 2 * readings++ };
  const externalActions = new ExternalActions({ clock: passing, log: silentLog, observed, remediationState });
  const publish = (status: NodeStatus) => {
    const inventory = new Inventory("ratio");
    for (const node of nodes) inventory.recordListed(record(node, { status }), 0);
    const fleet = inventory.currentFleet();
    const snapshot = { sequence: 1, at: 0, fleet, sessions: null, stats: null, hourly: null };
    observed.latest = { snapshot, plan: {} as never };
  };
  publish("rebooting");
  const detected = externalActions.detect();
  publish("online");
  await detected;
  expect(records.allHolds()).toHaveLength(nodes.length);
});
