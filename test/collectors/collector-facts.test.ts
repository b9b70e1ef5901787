import { expect, onTestFinished, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import type { StateStore } from "../../src/model/ports.ts";
import { startVirtualDaemon, stopVirtualDaemon } from "../harness/virtual-daemon.ts";

/** Starts a daemon on a store whose facts can't be read, written or both while `failing` says so. */
async function startOnFailingStore() {
  const store = createMemoryStateStore();
  const failing = { read: false, write: false };
  const facts: StateStore["facts"] = {
    read(key) {
      if (failing.read) throw new Error("disk I/O error");
      return store.facts.read(key);
    },
    write(key, value) {
      if (failing.write) throw new Error("disk I/O error");
      store.facts.write(key, value);
    },
  };
  const daemon = await startVirtualDaemon({ store: { ...store, facts }, scenario: { nodes: 50, sessions: 50 } });
  onTestFinished(() => stopVirtualDaemon(daemon));
  await daemon.clock.advance(5 * MINUTE_MS);
  return { daemon, store, failing };
}

type FailingStore = Awaited<ReturnType<typeof startOnFailingStore>>;

test.each<[string, (started: FailingStore) => void]>([
  ["can't be read", ({ failing }) => Object.assign(failing, { read: true })],
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
  const intervalMs = Math.max(...Object.values(collectorManager.plan()).map((plan) => plan?.intervalMs ?? 0));
  for (const at of [fleet.walkedAt!, sessions!.settledAt, stats!.at, hourly!.at])
    expect(clock.monotonic() - at).toBeLessThanOrEqual(2 * intervalMs);
  const errors = log.lines.filter(({ level }) => level === "error").map(({ message }) => message);
  expect(errors).toEqual([...new Set(errors)]);
});

test("each failure is logged when it begins", async () => {
  const { daemon, failing } = await startOnFailingStore();
  for (const isFailing of [true, false, true]) {
    Object.assign(failing, { read: isFailing, write: isFailing });
    await daemon.clock.advance(10 * MINUTE_MS);
  }
  const messages = daemon.log.lines.map(({ message }) => message).filter((message) => message.startsWith("fact not"));
  const both = [
    expect.stringMatching(/^fact not (stored|readable)/),
    expect.stringMatching(/^fact not (stored|readable)/),
  ];
  expect(messages).toEqual([...both, ...both]);
  expect(new Set(messages).size).toBe(2);
});

test("a reload starts the collectors again while the state can't be read", async () => {
  const { daemon, failing } = await startOnFailingStore();
  failing.read = true;
  await stopVirtualDaemon(daemon);
  const { clock, service, collected } = daemon;
  const reloaded = await startVirtualDaemon({ clock, service, collected });
  const before = service.serial;
  await clock.advance(5 * MINUTE_MS);
  expect(service.serial - before).toBeGreaterThan(5);
  await stopVirtualDaemon(reloaded);
});
