import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { type PostgresCluster, startPostgres } from "../../test/harness/servers/postgres-cluster.ts";
import { type Member, until } from "../../test/integration/high-availability/member.ts";
import { startProcessGroup } from "../../test/integration/high-availability/process-group.ts";

/** The defaults of `state.postgres.lease` and, for a small fleet, of the walks. */
const LEASE_MS: DurationMs = 15 * SECOND_MS;
const WALK_EVERY_MS: DurationMs = MINUTE_MS;

/** A failure of the leader or of the database. */
interface Disturbance {
  /** Whether the leader itself continues afterwards. If absent, another daemon does. */
  readonly keepsLeader?: true;
  /** Disturbs a group. Returns what ends the disturbance; it is called when remediation continues. */
  start(leader: Member, cluster: PostgresCluster): Promise<() => void>;
}

const nothing = () => {};

/** A signal to the leader. `end` ends its effect. */
const signal = (name: NodeJS.Signals, end: (leader: Member) => void = nothing): Disturbance => ({
  async start(leader) {
    leader.kill(name);
    return () => end(leader);
  },
});

const drop = (direction: "to_server" | "to_client"): Disturbance => ({
  async start({ database }) {
    database.drop = direction;
    return () => {
      database.drop = null;
    };
  },
});

/** The failures, as `docs/high-availability.md` names them. */
export const disturbances: Readonly<Record<string, Disturbance>> = {
  "the leader is stopped (SIGTERM)": signal("SIGTERM"),
  "the leader is killed": signal("SIGKILL"),
  "the leader is paused (SIGSTOP)": signal("SIGSTOP", (leader) => leader.kill("SIGCONT")),
  "the leader's requests to the database are lost": drop("to_server"),
  "the database's responses to the leader are lost": drop("to_client"),
  "the database restarts": {
    keepsLeader: true,
    async start(_, cluster) {
      await cluster.stop("fast");
      await cluster.start();
      return nothing;
    },
  },
};

/** Returns the pauses of remediation, from the failure until a daemon would act again, in the daemons' time. */
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
      // The failure occurs at a random time between two walks.
      await systemClock.sleep((Math.random() * WALK_EVERY_MS) / speed);
      const failedAt = systemClock.monotonic();
      const end = await start(leader, cluster);
      const successors = () => group.members().filter((member) => keepsLeader || member !== leader);
      await until(
        () => "a daemon would act",
        async () => (await Promise.all(successors().map((member) => member.isHealing()))).includes(true),
      );
      pauses.push((systemClock.monotonic() - failedAt) * speed);
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
