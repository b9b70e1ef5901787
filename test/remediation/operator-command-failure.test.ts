import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import type { StateStore } from "../../src/model/ports.ts";
import { rebootOffline, remediationRules } from "../harness/policies.ts";
import { startQuietNetwork } from "../harness/quiet-network.ts";

/** A store whose disk can be full. */
function createFillableStore() {
  const store = createMemoryStateStore();
  const disk = { isFull: false };
  const commit: StateStore["journal"]["commit"] = async (changes) => {
    if (disk.isFull) throw new Error("database or disk is full");
    await store.journal.commit(changes);
  };
  return { disk, store: { ...store, journal: { ...store.journal, commit } } };
}

test("a command that can't be journaled changes nothing: the breaker stays open, and the inventory baseline stays", async () => {
  const { disk, store } = createFillableStore();
  const safety = { breaker: { share: 0, amount: 0, withinMs: HOUR_MS } };
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()], safety), store });
  network.interventions.startFailure(network.nodes()[0]!, { failureMode: "outage", remedy: "person" });
  await network.advance(10 * MINUTE_MS);
  network.setFault({ kind: "vanished", share: 0.9 }, "GET /v1/nodes?");
  await network.advance(5 * MINUTE_MS);
  const { breaker, largestWalkNodes: baseline } = network.controller().view.status();
  expect(breaker).not.toBeNull();
  disk.isFull = true;
  const { view } = network.controller();
  const orders = network.commands();
  expect(await orders.resetBreaker()).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(await orders.acceptInventory()).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(view.status()).toMatchObject({ breaker, largestWalkNodes: baseline });
  disk.isFull = false;
  await network.advance(5 * MINUTE_MS);
  expect(view.status()).toMatchObject({ breaker, largestWalkNodes: baseline });
  expect(await orders.resetBreaker()).toMatchObject({ ok: true });
  expect(await orders.acceptInventory()).toMatchObject({ ok: true });
  expect(view.status().breaker).toBeNull();
  expect(view.status().largestWalkNodes).toBeLessThan(baseline / 2);
});
