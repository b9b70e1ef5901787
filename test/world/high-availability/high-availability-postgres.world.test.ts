import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { type PostgresCluster, startPostgres } from "../../harness/servers/postgres-cluster.ts";
import { type Member, until } from "../../integration/high-availability/member.ts";
import { type ProcessGroup, startProcessGroup } from "../../integration/high-availability/process-group.ts";
import { createRandomChoices, type RandomChoices } from "../runs/random-choices.ts";

const SCHEDULES = Number(process.env.WORLD_SCHEDULES ?? 20);
const FIRST_SEED = Number(process.env.WORLD_SEED ?? 1);
const DISTURBANCES = 8;
/** In real time, from much less than the lease of 4 s to twice as long. */
const DISTURBED_MS: readonly DurationMs[] = [SECOND_MS / 5, SECOND_MS, 3 * SECOND_MS, 5 * SECOND_MS, 8 * SECOND_MS];

const { sleep } = systemClock;

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres(["fsync = off"]);
}, MINUTE_MS);
afterAll(() => cluster.remove());

/** A disturbance of a daemon or of the database. It returns once it has ended. */
type Disturbance = (daemon: Member, choices: RandomChoices) => Promise<void>;

async function cut({ database }: Member, choices: RandomChoices): Promise<void> {
  const drop = choices.pick(["to_server", "to_client", null] as const);
  if (drop === null) database.setRefusing(true);
  else database.drop = drop;
  await sleep(choices.pick(DISTURBED_MS));
  database.setRefusing(false);
  database.drop = null;
}

async function stop(daemon: Member, choices: RandomChoices): Promise<void> {
  daemon.kill(choices.pick(["SIGKILL", "SIGTERM"]));
  await daemon.ended;
}

async function pause(daemon: Member, choices: RandomChoices): Promise<void> {
  daemon.kill("SIGSTOP");
  await sleep(choices.pick(DISTURBED_MS));
  daemon.kill("SIGCONT");
}

async function restartDatabase(_: Member, choices: RandomChoices): Promise<void> {
  await cluster.stop(choices.pick(["fast", "immediate"]));
  await sleep(choices.pick(DISTURBED_MS));
  await cluster.start();
}

async function slowDatabase({ database }: Member, choices: RandomChoices): Promise<void> {
  database.delayMs = choices.ms(SECOND_MS / 10, 2 * SECOND_MS);
  await sleep(choices.pick(DISTURBED_MS));
  database.delayMs = 0;
}

const disturbances: readonly Disturbance[] = [cut, stop, pause, restartDatabase, slowDatabase];

/**
 * Disturbs a daemon when its next POST arrives, or once it was executed. Returns a function that waits until the
 * disturbance has ended.
 */
function disturbNextPost(group: ProcessGroup, choices: RandomChoices): () => Promise<void> {
  const disturbance = choices.pick([cut, stop, pause]);
  const at = choices.pick(["arrived", "answered"]);
  // Drawn later, at a time that is not the same in each run.
  const laterChoices = createRandomChoices(seededRandom(choices.integer(2 ** 31)));
  let disturbed: Promise<void> | null = null;
  async function disturb(userAgent: string): Promise<void> {
    const sender = group.members().find(({ name }) => userAgent.endsWith(`/${name}`));
    if (sender === undefined || disturbed !== null) return;
    disturbed = disturbance(sender, laterChoices);
    await disturbed;
  }
  group.setHooks({
    arrived: ({ userAgent }) => (at === "arrived" ? disturb(userAgent) : Promise.resolve()).then(() => true),
    answered: ({ userAgent }) => (at === "answered" ? disturb(userAgent) : Promise.resolve()),
  });
  return async () => disturbed ?? undefined;
}

/** Returns whether a node is healed, or was given up because both of its steps are in doubt. */
async function isSettled(group: ProcessGroup, node: string): Promise<boolean> {
  const actions = await cluster.query(
    `SELECT outcome, in_doubt FROM ${group.schema}.proxywarden_actions WHERE node = $1 AND outcome IS NOT NULL`,
    [node],
  );
  const isVerified = group.status(node) === "online" && actions.some(({ outcome }) => outcome === "verified");
  return isVerified || actions.filter(({ in_doubt }) => in_doubt).length === 2;
}

async function runSchedule(seed: number): Promise<void> {
  const choices = createRandomChoices(seededRandom(seed * 15_485_863));
  const group = await startProcessGroup(cluster);
  onTestFinished(() => group.stop());
  const size = choices.pick([2, 2, 3]);
  let started = 0;
  async function startMissing(): Promise<void> {
    while (group.members().length < size) {
      started++;
      await group.start(`daemon-${started}`, { clockSkewMs: choices.pick([0, 0, HOUR_MS, -HOUR_MS]) });
    }
  }
  await startMissing();
  await group.untilHealing();
  const failed: string[] = [];
  const ends: (() => Promise<void>)[] = [];
  for (let disturbance = 0; disturbance < DISTURBANCES; disturbance++) {
    if (choices.chance(0.5)) failed.push(group.failNode());
    if (choices.chance(0.3)) ends.push(disturbNextPost(group, choices));
    await startMissing();
    await choices.pick(disturbances)(choices.pick(group.members()), choices);
    await sleep(choices.pick(DISTURBED_MS));
  }
  group.setHooks({});
  for (const end of ends) await end();
  await startMissing();
  failed.push(group.failNode());
  for (const node of failed)
    await until(
      () => `${node} is healed or given up:\n${group.logs()}`,
      () => isSettled(group, node),
    );
  expect(await group.violations()).toEqual([]);
}

test.each(Array.from({ length: SCHEDULES }, (_, index) => FIRST_SEED + index))(
  "several processes on a real database send each step once, only as the leader, without a 429, and heal or give up every node: schedule %i",
  runSchedule,
);
