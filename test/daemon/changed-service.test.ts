import { expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { startDaemonGroup } from "../harness/daemon-group.ts";
import { everyMinuteSettings } from "../harness/virtual-daemon.ts";

test("the first walk of another service is not compared with the sessions of the previous one", async () => {
  const settings = { schedules: { ...everyMinuteSettings.schedules, details: null, stats: null, hourly: null } };
  const sessionsBefore = JSON.stringify({ nodes: 60, nodePages: 1, sessions: 10_000, sessionPages: 10 });
  const group = await startDaemonGroup({ daemons: 1, settings, scenario: { sessions: 200 } });
  const [one] = group.daemons;
  await group.advance(5 * MINUTE_MS);
  const { active } = one!.roleSwitch;
  if (active.isLeading) active.term.remediationState.facts.write("collect.network_size", sessionsBefore);
  await one!.reload({ serviceUrl: "https://another.example.net" });
  await group.advance(5 * MINUTE_MS);
  expect(one!.roleSwitch.active.collected().snapshot!.sessions).toMatchObject({ complete: true });
});
