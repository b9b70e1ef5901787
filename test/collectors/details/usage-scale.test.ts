import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { Inventory } from "../../../src/inventory/inventory.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { listsOnlySettings, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { startVirtualDaemon, stopVirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { detail, record } from "../../inventory/inventory-fixtures.ts";

test("ratios under usage_scale percent make all usage unknown, which is counted and logged once", async () => {
  const daemon = await startVirtualDaemon({
    scenario: { nodes: 60, sessions: 10, service: { ...defaultScenario.service, usageScale: "ratio" } },
    settings: { usageScale: "percent" },
  });
  // Two rounds of details.
  await daemon.clock.advance(35 * MINUTE_MS);
  const { fleet } = daemon.snapshots.last!;
  expect(fleet.usageKnown).toBe(false);
  expect([...fleet.cpuUsage, ...fleet.memoryUsage, ...fleet.diskUsage].every(Number.isNaN)).toBe(true);
  const warnings = daemon.log.lines.filter(({ fields }) => JSON.stringify(fields).includes("usage_out_of_scale"));
  expect(warnings).toHaveLength(1);
  await stopVirtualDaemon(daemon);
});

test("percentages under usage_scale percent stay known", async () => {
  const daemon = await startVirtualDaemon({
    scenario: { nodes: 60, sessions: 10, service: { ...defaultScenario.service, usageScale: "percent" } },
    settings: { usageScale: "percent" },
  });
  // Two rounds of details.
  await daemon.clock.advance(35 * MINUTE_MS);
  expect(daemon.snapshots.last!.fleet.usageKnown).toBe(true);
  await stopVirtualDaemon(daemon);
});

test("percentages under usage_scale ratio are counted and logged once if only remediation reads details", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    scenario: { service: { ...defaultScenario.service, usageScale: "percent" } },
    settings: { ...listsOnlySettings, usageScale: "ratio" },
  });
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(20 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ outcome: "verified" }]);
  const { log, metrics, snapshots } = network.daemon;
  expect(snapshots.last!.fleet.usageKnown).toBe(false);
  expect(await metrics.render("text")).toContain(
    'proxywarden_records_rejected_total{collector="details",reason="usage_out_of_scale"} 1\n',
  );
  expect(log.lines.filter(({ fields }) => fields.reason === "usage_out_of_scale")).toHaveLength(1);
});

describe("under usage_scale percent", () => {
  const usage = (cpuUsage: number, memoryUsage: number | null, diskUsage: number | null) => ({
    cpuUsage,
    memoryUsage,
    diskUsage,
  });

  function readingsOf(nodes: number, values: ReturnType<typeof usage>, rounds = 1) {
    const inventory = new Inventory("percent");
    const ids = Array.from({ length: nodes }, (_, index) => `node_${index}`);
    for (const id of ids) inventory.recordListed(record(id), 0);
    const accepted = Array.from({ length: rounds }, () => ids).flatMap((round) =>
      round.map((id) => inventory.recordDetail({ ...detail(id, 0), ...values }, 1, 1)),
    );
    return { inventory, taken: accepted };
  }

  test("the twentieth node with no usage above 1.5 contradicts the scale, once", () => {
    const { inventory, taken: accepted } = readingsOf(25, usage(0.4, 0.9, 0.3));
    expect(accepted.indexOf("bad_scale")).toBe(19);
    expect(accepted.filter((result) => result === "bad_scale")).toHaveLength(1);
    expect(inventory.currentFleet().usageKnown).toBe(false);
  });

  test("an idle fleet of fewer nodes does not contradict the scale, however often it is read", () => {
    expect(readingsOf(19, usage(0.4, 0.9, 0.3), 10).inventory.currentFleet().usageKnown).toBe(true);
  });

  test("nodes without memory and disk usage, or with zeros, prove nothing about the scale", () => {
    expect(readingsOf(25, usage(0.4, null, null)).inventory.currentFleet().usageKnown).toBe(true);
    expect(readingsOf(25, usage(0, 0, 0)).inventory.currentFleet().usageKnown).toBe(true);
  });

  test("a usage above 1.5 proves the scale, even after nodes below it", () => {
    const { inventory } = readingsOf(25, usage(0.4, 0.9, 0.3));
    expect(inventory.recordDetail({ ...detail("node_3", 0), ...usage(0.4, 42, 0.3) }, 2, 2)).toBe("taken");
    const { usageKnown, memoryUsage } = inventory.currentFleet();
    expect(usageKnown).toBe(true);
    expect(memoryUsage.at(3)).toBe(0.42);
    expect(memoryUsage.at(4)).toBeNaN();
  });
});
