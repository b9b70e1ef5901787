import { expect, test } from "vitest";
import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { readSqliteState } from "../../../src/journal/sqlite/store.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { runCommand, startCommand } from "../process.ts";
import { type HealingSetup, rebootOffline, startHealingSetup } from "../remediation/healing-daemon.ts";
import { waitUntil } from "../wait-until.ts";

/** Docker kills a container this long after SIGTERM. */
const STOP_GRACE_MS: DurationMs = 10 * SECOND_MS;
const ANSWERED_AFTER_MS: DurationMs = 2 * SECOND_MS;

/** The daemon runs in real time, so it acts after the first walk, without limits that would delay it. */
const fastLimits = {
  limits: { node_management: { requests: 10_000, burst: 20_000, window: "1m" } },
  collect: { nodes: { every: "1s" }, details: { max_age: "1d" }, sessions: { every: "1h" }, stats: { every: "1h" } },
  safety: { mode: "enforce", trust: { warmup_walks: 1 } },
};

/** Starts `run` in real time, and waits until its POST is under way; `answered` decides when it is answered. */
async function runUntilPosting(answered: () => Promise<void>) {
  const setup = await startHealingSetup({ speed: 1 });
  setup.interventions.startFailure(setup.nodes[0]!, { failureMode: "outage", remedy: "reboot" });
  setup.serviceProxy.setHooks({ answered });
  const { file } = setup.writeConfig([rebootOffline()], fastLimits);
  const daemon = startCommand("run", "--config", file);
  await waitUntil(
    () => `the POST is under way; its output:\n${daemon.err()}`,
    () => setup.serviceProxy.postRequests.length === 1,
  );
  return { setup, daemon, file };
}

/** Returns what a stopped daemon left in its journal. */
async function journalLeftBy({ folder }: HealingSetup) {
  return orThrow(
    await readSqliteState(folder.pathOf("state"), async (journal) => {
      const [action, ...others] = await journal.actions({ limit: 10 });
      const [episode] = await journal.episodes({ limit: 10 });
      return { action, others, episode };
    }),
  );
}

test("SIGTERM while a POST is under way: an answer within 2 s is journaled, and the daemon exits with 0", async () => {
  const { setup, daemon } = await runUntilPosting(() => systemClock.sleep(ANSWERED_AFTER_MS));
  daemon.kill("SIGTERM");
  expect(await daemon.ended).toMatchObject({ code: 0, out: "" });
  expect(await journalLeftBy(setup)).toMatchObject({
    action: { state: "sent", inDoubt: false, detail: expect.stringMatching(/^Graceful reboot of node/) },
    others: [],
    episode: { state: "acting", acted: 1 },
  });
});

test("SIGTERM while a POST hangs: after 7 s it is in doubt, and the daemon exits with 0; until then no second one starts on its state", async () => {
  const { setup, daemon, file } = await runUntilPosting(() => new Promise(() => {}));
  const stoppedAt = systemClock.monotonic();
  daemon.kill("SIGTERM");
  const [second, first] = await Promise.all([runCommand("run", "--config", file), daemon.ended]);
  expect(second).toMatchObject({ code: 1, err: expect.stringContaining("is held by another proxywarden") });
  expect(first).toMatchObject({ code: 0, out: "" });
  expect(systemClock.monotonic() - stoppedAt).toBeLessThan(STOP_GRACE_MS);
  expect(await journalLeftBy(setup)).toMatchObject({
    action: { state: "sent", inDoubt: true },
    others: [],
    episode: { state: "acting", acted: 1 },
  });
  expect(setup.serviceProxy.postRequests).toHaveLength(1);
});
