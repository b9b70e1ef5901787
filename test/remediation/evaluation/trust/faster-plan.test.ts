import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../../src/journal/sqlite/store.ts";
import { listsOnlySettings, type QuietNetwork, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { businessLimits } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";

const config = remediationConfig([rebootOffline()]);

const trustOf = (network: QuietNetwork) => network.controller().view.status().trust;
const intervalOf = (network: QuietNetwork) => network.daemon.collectorManager.plan().nodes!.intervalMs;

/** Settings that read only the list of nodes, once per interval. */
const every = (intervalMs: number) => ({
  ...listsOnlySettings,
  schedules: { ...listsOnlySettings.schedules!, nodes: { kind: "every", intervalMs } as const },
});

const freshMsOf = (network: QuietNetwork) => network.daemon.collectorManager.plan().nodes!.freshMs;

test("fleet data stays trusted when a reload shortens the interval of the list", async () => {
  const network = await startQuietNetwork({ config, settings: every(20 * MINUTE_MS), warmUpMs: 55 * MINUTE_MS });
  expect(trustOf(network)).toEqual([]);
  await network.reload({ settings: every(MINUTE_MS) });
  await network.advance(2 * MINUTE_MS);
  expect(trustOf(network)).toEqual([]);
  await network.advance(3 * MINUTE_MS);
  expect(freshMsOf(network)).toBe(3 * MINUTE_MS);
});

test("fleet data is no longer trusted after three intervals without a walk, although the plan was slower shortly before", async () => {
  const network = await startQuietNetwork({ config, settings: every(MINUTE_MS) });
  network.setFault({ kind: "reset" });
  await network.reload({ settings: every(20 * MINUTE_MS) });
  expect(freshMsOf(network)).toBe(HOUR_MS);
  await network.reload({ settings: every(MINUTE_MS) });
  await network.advance(5 * MINUTE_MS);
  expect(freshMsOf(network)).toBe(3 * MINUTE_MS);
  expect(trustOf(network).map(({ reason }) => reason)).toContain("inventory_incomplete");
});

/** Starts a daemon an hour before the end of a month whose calls are nearly used up. */
async function startAtMonthEnd(): Promise<QuietNetwork> {
  const store = createMemoryStateStore();
  await store.calls.add("2026-02-20", 98_960);
  const limits = { ...businessLimits, plan: { ...businessLimits.plan, callsPerMonth: 100_000 } };
  const settings = { ...listsOnlySettings, limits, monthStartsOn: 2 };
  const network = await startQuietNetwork({ config, settings, store, warmUpMs: 23 * HOUR_MS });
  expect(intervalOf(network)).toBeGreaterThan(30 * MINUTE_MS);
  expect(trustOf(network)).toEqual([]);
  return network;
}

test("when a month with more calls begins, data stays trusted, and a region that failed just before is one incident", async () => {
  const network = await startAtMonthEnd();
  await network.advance(59 * MINUTE_MS);
  const nodes = network.nodes("us-east");
  expect(nodes.length).toBeGreaterThan(5);
  for (const node of nodes) network.failNode(node, "operator");
  await network.advance(2 * MINUTE_MS);
  expect(intervalOf(network)).toBe(MINUTE_MS);
  expect(trustOf(network)).toEqual([]);
  await network.advance(18 * MINUTE_MS);
  expect(network.holdReasons(nodes[0]!)).toContain("correlated");
});
