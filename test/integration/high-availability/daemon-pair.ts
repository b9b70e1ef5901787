import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { type PostgresCluster, startPostgres } from "../../harness/servers/postgres-cluster.ts";
import { type Member, until } from "./member.ts";
import { type ProcessGroup, startProcessGroup } from "./process-group.ts";

/** Time limit of a test: processes start slowly on a busy machine. */
export const TEST_MS_MAX: DurationMs = 10 * MINUTE_MS;

/** The wall clocks of the daemons, which leases and limits do not depend on. */
const CLOCK_SKEWS_MS: readonly DurationMs[] = [0, HOUR_MS, -HOUR_MS];

/** Two daemons on one database, which all tests of a file share. */
export class DaemonPair {
  readonly cluster: PostgresCluster;
  readonly group: ProcessGroup;
  #started = 0;

  constructor(cluster: PostgresCluster, group: ProcessGroup) {
    this.cluster = cluster;
    this.group = group;
  }

  /** Waits until one of two daemons would act. Starts those that are missing. */
  async leaderAndStandby(): Promise<{ readonly leader: Member; readonly standby: Member }> {
    while (this.group.members().length < 2) {
      const clockSkewMs = CLOCK_SKEWS_MS[this.#started % CLOCK_SKEWS_MS.length]!;
      this.#started++;
      await this.group.start(`daemon-${this.#started}`, { clockSkewMs });
    }
    const leader = await this.group.untilHealing();
    return { leader, standby: this.group.members().find((member) => member !== leader)! };
  }

  /** Returns the POSTs to a node, in order. */
  postsTo(node: string) {
    return this.group.posts.filter(({ path }) => path.includes(node));
  }
}

/** Starts a pair before the tests of a file and stops it after them. No test may violate an invariant. */
export function shareDaemonPair(): () => DaemonPair {
  let pair: DaemonPair;
  beforeAll(async () => {
    const cluster = await startPostgres(["fsync = off"]);
    pair = new DaemonPair(cluster, await startProcessGroup(cluster));
  }, MINUTE_MS);
  afterAll(async () => {
    await pair.group.stop();
    await pair.cluster.remove();
  });
  afterEach(async () => {
    pair.group.setHooks({});
    expect(await pair.group.violations()).toEqual([]);
  });
  return () => pair;
}

/** Waits until a daemon leads. */
export const untilLeading = (member: Member) => until(() => `${member.name} leads:\n${member.err()}`, member.isLeading);
