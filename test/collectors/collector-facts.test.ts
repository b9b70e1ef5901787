import { expect, onTestFinished, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import type { Journal } from "../../src/model/remediation/journal.ts";
import { startVirtualDaemon, stopVirtualDaemon } from "../harness/daemon/virtual-daemon.ts";

/** Starts a daemon on a store whose journal can't be written while `failing` says so. */
async function startOnFailingStore() {
  const store = createMemoryStateStore();
  const failing = { write: false };
  const journal: Journal = {
    ...store.journal,
    async commit(changes) {
      if (failing.write) throw new Error("disk I/O error");
      await store.journal.commit(changes);
    },
  };
  const daemon = await startVirtualDaemon({ store: { ...store, journal }, scenario: { nodes: 20, sessions: 20 } });
  onTestFinished(() => stopVirtualDaemon(daemon));
  await daemon.clock.advance(5 * MINUTE_MS);
  return { daemon, store, failing };
}

type FailingStore = Awaited<ReturnType<typeof startOnFailingStore>>;

test.each<[string, (started: FailingStore) => void]>([
  ["can't be written", ({ failing }) => Object.assign(failing, { write: true })],
  ["is closed because a transaction could not be rolled back", ({ store }) => store.database.close()],
])("all collectors continue if the state %s", async (_problem, breakStore) => {
  const started = await startOnFailingStore();
  const { clock, collectorManager, log, snapshots } = started.daemon;
  breakStore(started);
  await clock.advance(70 * MINUTE_MS);
  const failures = Object.values(collectorManager.collectorHealth()).map(({ failure }) => failure);
  expect(failures).toEqual(failures.map(() => null));
  const { fleet, sessions, stats, hourly } = snapshots.last!;
  const readAt = { nodes: fleet.walkedAt, sessions: sessions!.settledAt, stats: stats!.at, hourly: hourly!.at };
  const plan = collectorManager.plan();
  for (const collector of ["nodes", "sessions", "stats", "hourly"] as const) {
    const ageMs = clock.monotonic() - readAt[collector]!;
    expect(ageMs, collector).toBeLessThanOrEqual(plan[collector]!.intervalMs + MINUTE_MS);
  }
  const errors = log.lines.filter(({ level }) => level === "error").map(({ message }) => message);
  expect(errors).toEqual([...new Set(errors)]);
});

test("what could not be written is written as soon as it can be", async () => {
  const { daemon, store, failing } = await startOnFailingStore();
  const before = (await store.journal.facts()).get("collect.nodes.run");
  failing.write = true;
  await daemon.clock.advance(10 * MINUTE_MS);
  expect((await store.journal.facts()).get("collect.nodes.run")).toBe(before);
  failing.write = false;
  await daemon.clock.advance(10 * MINUTE_MS);
  expect((await store.journal.facts()).get("collect.nodes.run")).not.toBe(before);
});
