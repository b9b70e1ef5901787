import { expect, test } from "vitest";
import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { type DaemonGroup, type GroupedDaemon, startDaemonGroup } from "../../harness/daemon/daemon-group.ts";
import { actualNodes } from "../../harness/simulator/actual-state.ts";
import { createRandomChoices, type RandomChoices } from "../runs/random-choices.ts";

const SCHEDULES = Number(process.env.WORLD_SCHEDULES ?? 200);
const FIRST_SEED = Number(process.env.WORLD_SEED ?? 1);
/** After this time the first leader's inventory is trusted. */
const WARM_UP_MS: DurationMs = 4 * MINUTE_MS;
const DISTURBED_MS: DurationMs = HOUR_MS;
/** Share of disturbances during which a node fails. */
const FAILURES_SHARE = 0.15;
/** Number of failures. With more, the circuit breaker would open. */
const FAILURES_MAX = 8;
/**
 * Every node is healed within this time: a hold because of the wall clock, of up to two hours, and the steps of all
 * episodes.
 */
const QUIET_MS: DurationMs = 3 * HOUR_MS;
/** Time until a standby has taken the lease of a leader that is gone: its lease, and one attempt to acquire it. */
const LEADERLESS_MS_MAX: DurationMs = 20 * SECOND_MS;

/** A disturbance of a group; it ends by itself. */
type Disturbance = (group: DaemonGroup, daemon: GroupedDaemon, choices: RandomChoices) => void;

/** Runs `end` after `ms`. */
function later(group: DaemonGroup, ms: DurationMs, end: () => void): void {
  void group.clock.sleep(ms).then(end);
}

const disturbances: readonly Disturbance[] = [
  // SIGSTOP and SIGCONT, from less than the lease to several leases.
  function pauseDaemon(group, daemon, choices) {
    daemon.pause();
    later(group, choices.pick([2, 10, 16, 40, 120]) * SECOND_MS, daemon.resume);
  },
  function cutDatabaseOff(group, daemon, choices) {
    daemon.database.isReachable = false;
    later(group, choices.pick([2, 14, 16, 40, 120]) * SECOND_MS, () => {
      daemon.database.isReachable = true;
    });
  },
  function stopDatabase(group, _daemon, choices) {
    for (const daemon of group.daemons) daemon.database.isReachable = false;
    later(group, choices.pick([3, 16, 60, 240]) * SECOND_MS, () => {
      for (const daemon of group.daemons) daemon.database.isReachable = true;
    });
  },
  // The next commit is written, and its reply comes late or after the connection was lost.
  function delayReply(group, daemon, choices) {
    const [delayMs, isLost] = [choices.pick([1, 5, 20]) * SECOND_MS, choices.chance(0.5)];
    daemon.database.onCommitted = async () => {
      daemon.database.onCommitted = () => {};
      if (isLost) daemon.database.isReachable = false;
      await group.clock.sleep(delayMs);
      daemon.database.isReachable = true;
    };
  },
  function setWallClock(group, _daemon, choices) {
    const stepMs = choices.pick([-1, 1]) * HOUR_MS;
    group.clock.stepWallClock(stepMs);
    later(group, 5 * MINUTE_MS, () => group.clock.stepWallClock(-stepMs));
  },
];

function stepsSentTwice({ posts }: DaemonGroup): readonly string[] {
  const steps = posts.map(({ path, body }) => `${path} ${body}`);
  return steps.filter((step, index) => steps.indexOf(step) < index);
}

async function runSchedule(seed: number): Promise<void> {
  const choices = createRandomChoices(seededRandom(seed * 104_729));
  const group = await startDaemonGroup({ daemons: choices.pick([2, 3]) });
  await group.advance(WARM_UP_MS);
  const failed: string[] = [];
  for (let at = 0; at < DISTURBED_MS; ) {
    const waitMs = choices.pick([5, 20, 60, 180]) * SECOND_MS;
    if (failed.length < FAILURES_MAX && choices.chance(FAILURES_SHARE))
      failed.push(group.failNode(choices.pick(["reboot", "forced_reboot"] as const)));
    choices.pick(disturbances)(group, choices.pick(group.daemons), choices);
    await group.advance(waitMs);
    at += waitMs;
  }
  for (const { database } of group.daemons) database.onCommitted = () => {};
  await group.advance(5 * MINUTE_MS);
  const leader = group.daemons.find(({ roleSwitch }) => roleSwitch.isLeading());
  expect(leader, "there is a leader once the disturbances are over").toBeDefined();
  leader!.pause();
  await group.advance(LEADERLESS_MS_MAX);
  expect(group.leaders().filter((name) => name !== leader!.name)).toHaveLength(1);
  leader!.resume();
  await group.advance(QUIET_MS);
  expect(group.leaders()).toHaveLength(1);
  expect(group.posts.filter(({ isByLeader }) => !isByLeader)).toEqual([]);
  expect(stepsSentTwice(group)).toEqual([]);
  expect(group.rejectedCalls()).toBe(0);
  const online = new Set(
    [...actualNodes(group.service)].flatMap(({ id, status }) => (status === "online" ? [id] : [])),
  );
  expect(failed.filter((node) => !online.has(node))).toEqual([]);
}

test.each(Array.from({ length: SCHEDULES }, (_, index) => FIRST_SEED + index))(
  "several daemons send each step once, only as the leader, without a 429, and heal every node: schedule %i",
  runSchedule,
  10 * MINUTE_MS,
);
