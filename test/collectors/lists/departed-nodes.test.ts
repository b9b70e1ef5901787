import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createNetworkPage } from "../../harness/daemon/network-page.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { everyMinuteSettings } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";

const schedules = { ...everyMinuteSettings.schedules, sessions: { kind: "every", intervalMs: 6 * HOUR_MS } } as const;
const options = { nodeLabels: [], topCustomers: 20, deny: new Set<string>(), seriesMax: 1_000_000 };

/** Starts a network whose sessions are read every six hours. */
async function start() {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    scenario: { nodes: 60, sessions: 600 },
    settings: { schedules },
  });
  await network.advance(10 * MINUTE_MS);
  const page = createNetworkPage(network.daemon, options);
  return {
    network,
    linesOf: (nodes: readonly string[]) =>
      page()
        .split("\n")
        .filter((line) => nodes.some((id) => line.includes(id))),
  };
}

test("no series shows a node that has left the fleet, although the last walk of the sessions showed sessions of it", async () => {
  const { network, linesOf } = await start();
  const nodes = network.nodes();
  const gone = nodes[0]!;
  const before = linesOf(nodes.slice(1)).length;
  const ofGone = linesOf([gone]);
  expect(ofGone.some((line) => /^proxynet_node_sessions\{.*status="active"\} [1-9]/.test(line))).toBe(true);
  network.interventions.leaveFleet(gone, Number.POSITIVE_INFINITY);
  await network.advance(5 * MINUTE_MS);
  expect(linesOf([gone])).toEqual([]);
  expect(linesOf(nodes.slice(1)).length).toBe(before);
});

test("no series shows the nodes that an operator has accepted as missing", async () => {
  const { network, linesOf } = await start();
  const nodes = network.nodes();
  const [gone, left] = [nodes.slice(0, 30), nodes.slice(30)];
  const before = linesOf(left).length;
  for (const id of gone) network.interventions.leaveFleet(id, Number.POSITIVE_INFINITY);
  await network.advance(10 * MINUTE_MS);
  expect(linesOf(gone).length).toBeGreaterThan(0);
  expect(await network.commands().acceptInventory()).toMatchObject({ ok: true });
  await network.advance(5 * MINUTE_MS);
  expect(linesOf(gone)).toEqual([]);
  expect(linesOf(left).length).toBe(before);
});
