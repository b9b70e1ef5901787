import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { createSystemClock } from "../../src/platform/clock.ts";
import { type PostgresCluster, startPostgres } from "../../test/harness/postgres-cluster.ts";
import { type Member, until } from "../../test/integration/high-availability/member.ts";
import { startProcessGroup } from "../../test/integration/high-availability/process-group.ts";

/** The defaults of `state.postgres.lease` and, for a small fleet, of the walks. */
const LEASE_MS: DurationMs = 15 * SECOND_MS;
const WALK_EVERY_MS: DurationMs = MINUTE_MS;

const clock = createSystemClock();

/** A failure of the leader or of the database. */
interface Disturbance {
  /** Whether the leader itself continues afterwards; absent: another daemon does. */
  readonly keepsLeader?: true;
  /** Disturbs a group. Returns what ends the disturbance; it is called when healing goes on. */
  start(leader: Member, cluster: PostgresCluster): Promise<() => void>;
}

const nothing = () => {};

/** The failures, as `docs/high-availability.md` names them. */
export const disturbances: Readonly<Record<string, Disturbance>> = {
  "the leader is stopped (SIGTERM)": {
    async start(leader) {
      leader.kill("SIGTERM");
      return nothing;
    },
  },
  "the leader is killed": {
    async start(leader) {
      leader.kill("SIGKILL");
      return nothing;
    },
  },
  "the leader is paused (SIGSTOP)": {
    async start(leader) {
      leader.kill("SIGSTOP");
      return () => leader.kill("SIGCONT");
    },
  },
  "the leader's requests to the database are lost": {
    async start({ database }) {
      database.drop = "to_server";
      return () => {
        database.drop = null;
      };
    },
  },
  "the database's answers to the leader are lost": {
    async start({ database }) {
      database.drop = "to_client";
      return () => {
        database.drop = null;
      };
    },
  },
  "the database restarts": {
    keepsLeader: true,
    async start(_, cluster) {
      await cluster.stop("fast");
      await cluster.start();
      return nothing;
    },
  },
};

/** Returns the pauses of healing, from the failure until a daemon would act again, in the daemons' time. */
export async function measurePauses(name: string, runs: number, speed: number): Promise<readonly DurationMs[]> {
  const { keepsLeader = false, start } = disturbances[name]!;
  const cluster = await startPostgres();
  const group = await startProcessGroup(cluster, { speed, leaseMs: LEASE_MS / speed, walkEveryMs: WALK_EVERY_MS });
  const pauses: DurationMs[] = [];
  try {
    for (let started = 0; pauses.length < runs; ) {
      while (group.members().length < 2) {
        await group.start(`daemon-${started}`);
        started++;
      }
      const leader = await group.untilHealing();
      // The failure comes at any time between two walks.
      await clock.sleep((Math.random() * WALK_EVERY_MS) / speed);
      const failedAt = clock.monotonic();
      const end = await start(leader, cluster);
      const successors = () => group.members().filter((member) => keepsLeader || member !== leader);
      await until(
        () => "a daemon would act",
        async () => (await Promise.all(successors().map((member) => member.isHealing()))).includes(true),
      );
      pauses.push((clock.monotonic() - failedAt) * speed);
      end();
      process.stderr.write(`${name}: ${(pauses.at(-1)! / SECOND_MS).toFixed(1)} s\n`);
    }
    const violations = await group.violations();
    if (violations.length > 0) throw new Error(violations.join("\n"));
  } finally {
    await group.stop();
    await cluster.remove();
  }
  return pauses;
}
