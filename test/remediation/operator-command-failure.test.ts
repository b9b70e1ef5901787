import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { Store } from "../../src/model/ports.ts";
import { createMemoryStore } from "../../src/journal/sqlite.ts";
import { rebootOffline, rulesOf } from "../harness/policies.ts";
import { startWard } from "../harness/quiet-network.ts";

/** A store whose disk may be full. */
function createFillableStore() {
  const store = createMemoryStore();
  const disk = { isFull: false };
  const commit: Store["journal"]["commit"] = (changes) => {
    if (disk.isFull) throw new Error("database or disk is full");
    store.journal.commit(changes);
  };
  return { disk, store: { ...store, journal: { ...store.journal, commit } } };
}

test("an order that the journal can't take changes nothing: the breaker stays open, and the inventory is measured as before", async () => {
  const { disk, store } = createFillableStore();
  const safety = { breaker: { share: 0, amount: 0, withinMs: HOUR_MS } };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], safety), store });
  ward.people.fallIll(ward.nodes()[0]!, { ailment: "outage", cure: "person" });
  await ward.pass(10 * MINUTE_MS);
  ward.strike({ kind: "vanished", share: 0.9 }, "GET /v1/nodes?");
  await ward.pass(5 * MINUTE_MS);
  const { breaker, baseline } = ward.warden().view.status();
  expect(breaker).not.toBeNull();
  disk.isFull = true;
  const { orders, view } = ward.warden();
  expect(orders.resetBreaker()).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(orders.acceptInventory()).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(view.status()).toMatchObject({ breaker, baseline });
  disk.isFull = false;
  await ward.pass(5 * MINUTE_MS);
  expect(view.status()).toMatchObject({ breaker, baseline });
  expect(orders.resetBreaker()).toMatchObject({ ok: true });
  expect(orders.acceptInventory()).toMatchObject({ ok: true });
  expect(view.status().breaker).toBeNull();
  expect(view.status().baseline).toBeLessThan(baseline / 2);
  await ward.stop();
});
