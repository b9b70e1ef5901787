import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import type { StateStore } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { listsOnlySettings, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";

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
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], safety), store });
  network.interventions.startFailure(network.nodes()[0]!, { failureMode: "outage", remedy: "operator" });
  await network.advance(10 * MINUTE_MS);
  network.setFault({ kind: "vanished", missing: 0.9 }, "GET /v1/nodes?");
  await network.advance(5 * MINUTE_MS);
  const { breaker, largestWalkNodes: baseline } = network.controller().view.status();
  expect(breaker).not.toBeNull();
  disk.isFull = true;
  const { view } = network.controller();
  const commands = network.commands();
  expect(await commands.resetBreaker()).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(await commands.acceptInventory()).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(view.status()).toMatchObject({ breaker, largestWalkNodes: baseline });
  disk.isFull = false;
  await network.advance(5 * MINUTE_MS);
  expect(view.status()).toMatchObject({ breaker, largestWalkNodes: baseline });
  expect(await commands.resetBreaker()).toMatchObject({ ok: true });
  expect(await commands.acceptInventory()).toMatchObject({ ok: true });
  expect(view.status().breaker).toBeNull();
  expect(view.status().largestWalkNodes).toBeLessThan(baseline / 2);
});

test("accept-inventory is kept, also after a restart, if a walk of the next day ends while it is being journaled", async () => {
  const midnight = START_MS + DAY_MS;
  const clock = createVirtualClock(midnight - 3 * HOUR_MS);
  const store = createMemoryStateStore();
  const journal: typeof store.journal = {
    ...store.journal,
    async commit(changes) {
      if (changes.some(({ kind }) => kind === "command")) await clock.sleep(20 * MINUTE_MS);
      await store.journal.commit(changes);
    },
  };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    clock,
    scenario: { nodes: 20, sessions: 0 },
    settings: { schedules: { ...listsOnlySettings.schedules!, nodes: { kind: "every", intervalMs: 10 * MINUTE_MS } } },
    warmUpMs: HOUR_MS,
    store: { ...store, journal },
  });
  network.setFault({ kind: "vanished", missing: 0.9 }, "GET /v1/nodes?");
  await network.advance(midnight - MINUTE_MS - clock.now());
  const { largestWalkNodes: baseline } = network.controller().view.status();
  const accepted = network.commands().acceptInventory();
  await network.advance(30 * MINUTE_MS);
  expect(await accepted).toMatchObject({ ok: true });
  expect(network.controller().view.status().largestWalkNodes).toBeLessThan(baseline / 2);
  await network.restart();
  expect(network.controller().view.status().largestWalkNodes).toBeLessThan(baseline / 2);
});
