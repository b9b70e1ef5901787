import { expect, test } from "vitest";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { startDaemonOnNetwork } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

test("calls of another user of the key appear in /metrics and in the budget; without them the count is 0", async () => {
  // Real time: the window outlasts the test, so proven calls stay in it.
  const { network, daemon } = await startDaemonOnNetwork({ speed: 1 });
  const externalCalls = async (category: string) =>
    (await daemon.scrape()).sum("proxywarden_foreign_calls_total", { category });
  const serial = network.service.serial;
  await waitUntil("the service is polled", () => network.service.serial > serial + 5);
  expect(await Promise.all(["node_management", "session_monitoring", "plan"].map(externalCalls))).toEqual([0, 0, 0]);

  const authorization = `Bearer ${SIMULATION_KEY}`;
  for (let call = 0; call < 40; call++) {
    const reply = await fetch(`${network.url}/v1/nodes?limit=1`, { headers: { authorization } });
    await reply.arrayBuffer();
  }
  const proven = await waitUntil("the calls are counted", async () => (await externalCalls("node_management")) || null);
  expect(proven).toBeLessThanOrEqual(40);
  const budget = (await (await daemon.ask("/api/v1/budget")).json()) as {
    categories: { node_management: { external_usage: { calls: number; expected_per_window: number } } };
  };
  const { calls, expected_per_window: expected } = budget.categories.node_management.external_usage;
  expect(calls).toBeGreaterThan(0);
  expect(calls).toBeLessThanOrEqual(40);
  expect(expected).toBeGreaterThanOrEqual(calls);
});
