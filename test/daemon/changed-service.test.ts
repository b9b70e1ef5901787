import { expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { startDaemonGroup } from "../harness/daemon/daemon-group.ts";
import { everyMinuteSettings } from "../harness/daemon/virtual-daemon.ts";

/** Runs a daemon, stores a fact about its service, and reloads it with another one. Returns the totals of its sessions. */
async function sessionsOfOtherService(key: string, value: string) {
  const settings = { schedules: { ...everyMinuteSettings.schedules, details: null, stats: null, hourly: null } };
  const group = await startDaemonGroup({ daemons: 1, settings, scenario: { sessions: 200 } });
  const [one] = group.daemons;
  await group.advance(5 * MINUTE_MS);
  const { active } = one!.roleSwitch;
  if (active.isLeading) active.term.remediationState.facts.write(key, value);
  await one!.reload({ serviceUrl: "https://another.example.net" });
  await group.advance(5 * MINUTE_MS);
  return one!.roleSwitch.active.collected().snapshot!.sessions;
}

test("the first walk of another service is not compared with the sessions of the previous one", async () => {
  const sessionsBefore = JSON.stringify({ nodes: 60, nodePages: 1, sessions: 10_000, sessionPages: 10 });
  expect(await sessionsOfOtherService("collect.network_size", sessionsBefore)).toMatchObject({ complete: true });
});

test("failed sessions of another service are unknown until its list shows one, although the previous list did", async () => {
  expect(await sessionsOfOtherService("sessions.failed_listed", "true")).toMatchObject({ failedListed: false });
});
