import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { NOT_RUN } from "../../src/collectors/collector-health.ts";
import { type GroupedDaemon, startDaemonGroup } from "../harness/daemon/daemon-group.ts";
import { everyMinuteSettings } from "../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../harness/policies.ts";

const { schedules } = everyMinuteSettings;

async function startDaemon(options: Parameters<typeof startDaemonGroup>[0]) {
  const group = await startDaemonGroup({ daemons: 1, ...options });
  await group.advance(5 * MINUTE_MS);
  return { group, daemon: group.daemons[0]! };
}

const hanging = { fault: { kind: "hang" }, afterMs: 0, forMs: Number.POSITIVE_INFINITY } as const;

/** Gauges of what the service states, and of the data that was read. */
const OF_SERVICE =
  /^proxywarden_(collect_\w+(?<!_total)|ratelimit_(limit|remaining|reset)\w*|inventory_nodes|session_table\w*|limit_nodes)[{ ]/;

/** Returns the sample lines that contain a text. */
const linesWith = async (daemon: GroupedDaemon, text: string) =>
  (await daemon.scrape()).split("\n").filter((line) => !line.startsWith("#") && line.includes(text));

test("a safety limit that a reload removes is no longer exported", async () => {
  const configWith = (maxDisruptedPer: { region: number | null; country: number | null }) =>
    remediationConfig([rebootOffline()], { maxDisruptedPer });
  const { group, daemon } = await startDaemon({ config: configWith({ region: 1, country: null }) });
  expect(await linesWith(daemon, "max_disrupted_per")).toEqual([
    'proxywarden_limit_nodes{limit="max_disrupted_per.region"} 1',
  ]);
  await daemon.reload({ config: configWith({ region: null, country: 2 }) });
  await group.advance(MINUTE_MS);
  expect(await linesWith(daemon, "max_disrupted_per")).toEqual([
    'proxywarden_limit_nodes{limit="max_disrupted_per.country"} 2',
  ]);
});

test("a collector that a reload turns off has neither gauges nor a failure", async () => {
  const { group, daemon } = await startDaemon({ settings: { schedules } });
  group.service.setFaults([hanging]);
  await group.advance(3 * MINUTE_MS);
  const health = () => daemon.roleSwitch.active.collected().collectors.sessions;
  expect(health().failure).toMatchObject({ kind: "timeout" });
  await daemon.reload({ settings: { schedules: { ...schedules, sessions: null } } });
  const gauges = async () =>
    (await linesWith(daemon, 'collector="sessions"')).filter((line) => !line.includes("_total{"));
  expect(await gauges()).toEqual([]);
  expect(health()).toEqual(NOT_RUN);
  group.service.setFaults([]);
  await daemon.reload({ settings: { schedules } });
  await group.advance(2 * MINUTE_MS);
  expect(await gauges()).toContain('proxywarden_collect_complete{collector="sessions"} 1');
});

test("a reload to another service removes the gauges of the previous one", async () => {
  const { group, daemon } = await startDaemon({ settings: { schedules } });
  const gauges = async () => (await linesWith(daemon, "proxywarden_")).filter((line) => OF_SERVICE.test(line));
  expect((await gauges()).length).toBeGreaterThan(30);
  group.service.setFaults([hanging]);
  await daemon.reload({ serviceUrl: "https://another.example.net" });
  await group.advance(5 * SECOND_MS);
  expect(await gauges()).toEqual([]);
  expect(await linesWith(daemon, 'plan_interval_seconds{collector="nodes"}')).toHaveLength(1);
});

test("safety limits are unknown until a walk of the nodes has ended", async () => {
  const group = await startDaemonGroup({ daemons: 1 });
  group.service.setFaults([hanging]);
  const daemon = group.daemons[0]!;
  await group.advanceUntil(() => daemon.roleSwitch.isLeading());
  await group.advance(5 * SECOND_MS);
  const limits = () => daemon.roleSwitch.active.view.status().limits;
  expect([limits(), await linesWith(daemon, "limit_nodes")]).toEqual([null, []]);
  group.service.setFaults([]);
  await group.advance(2 * MINUTE_MS);
  expect(limits()).toMatchObject({ max_unhealthy: 12 });
});
