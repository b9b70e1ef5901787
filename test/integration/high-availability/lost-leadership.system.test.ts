import { expect, test } from "vitest";
import { VERSIONS } from "../../../src/journal/postgres/migrations.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { shareDaemonPair, TEST_MS_MAX, untilLeading } from "./daemon-pair.ts";
import { type Member, until } from "./member.ts";

const pair = shareDaemonPair();

const untilStandingBy = (member: Member) =>
  until(
    () => `${member.name} stands by:\n${member.err()}`,
    async () => (await member.scrape().catch(() => null))?.sum("proxynet_nodes") === null,
  );

test(
  "a leader that is stopped for longer than its lease during a POST goes on as a standby, and sends nothing more",
  async () => {
    const { group } = pair();
    const { leader, standby } = await pair().leaderAndStandby();
    group.setHooks({
      async answered() {
        leader.kill("SIGSTOP");
      },
    });
    const node = group.failNode();
    await untilLeading(standby);
    group.setHooks({});
    leader.kill("SIGCONT");
    await untilStandingBy(leader);
    await group.untilHealed(node);
    expect(pair().postsTo(node)).toHaveLength(1);
    // The other one hands over when it ends.
    standby.kill("SIGTERM");
    expect((await standby.ended).code).toBe(0);
    await untilLeading(leader);
  },
  TEST_MS_MAX,
);

const LOSSES = [
  ["answers of the database are lost", "to_client"],
  ["requests to the database are lost", "to_server"],
] as const;

test.each(isLongRun ? LOSSES : LOSSES.slice(0, 1))(
  "a leader whose %s is succeeded, sends nothing more, and stands by when it reaches the database again",
  async (_, drop) => {
    const { group } = pair();
    const { leader, standby } = await pair().leaderAndStandby();
    leader.database.drop = drop;
    const node = group.failNode();
    await untilLeading(standby);
    expect(await leader.isLeading()).toBe(false);
    expect(await leader.get("/api/v1/status")).toMatchObject({ leader: { is_this: false, name: null, url: null } });
    await group.untilHealed(node);
    const posts = pair().postsTo(node);
    // The leader may have sent the first step before it noticed. Then the other one has not.
    expect(posts.filter(({ body }) => body === '{"force":false}')).toHaveLength(1);
    leader.database.drop = null;
    await untilStandingBy(leader);
    expect(pair().postsTo(node)).toEqual(posts);
  },
  TEST_MS_MAX,
);

test(
  "while the database is down no daemon leads or takes a step, and one heals once the database is back",
  async () => {
    const { cluster, group } = pair();
    const { leader, standby } = await pair().leaderAndStandby();
    await cluster.stop("immediate");
    await until(
      () => "no daemon leads",
      async () => !(await leader.isLeading()),
    );
    const node = group.failNode();
    expect([(await leader.ask("/-/healthy")).status, (await standby.ask("/-/healthy")).status]).toEqual([200, 200]);
    expect((await leader.ask("/-/ready")).status).toBe(503);
    expect(pair().postsTo(node)).toEqual([]);
    await cluster.start();
    await group.untilHealed(node);
    expect(pair().postsTo(node)).toHaveLength(1);
  },
  TEST_MS_MAX,
);

test(
  "while the database rejects commits the leader exports what it has and holds actions, and nothing recorded is lost",
  async () => {
    const { cluster, group } = pair();
    const { leader, standby } = await pair().leaderAndStandby();
    // A new leader would decide again.
    standby.kill("SIGKILL");
    const heldByJournal = async () =>
      (await leader.scrape()).sum("proxywarden_decisions_total", { verdict: "hold", reason: "journal" }) ?? 0;
    const heldBefore = await heldByJournal();
    const table = `${group.schema}.last_commit`;
    await cluster.query(`ALTER TABLE ${table} ADD CONSTRAINT rejected CHECK (false) NOT VALID`);
    const node = group.failNode();
    await until(
      () => "the journal can't be written",
      async () => (await leader.scrape()).sum("proxywarden_journal_writable") === 0,
    );
    await until(
      () => "the action is held",
      async () => (await heldByJournal()) > heldBefore,
    );
    expect((await leader.scrape()).sum("proxynet_nodes")).toBe(60);
    expect(pair().postsTo(node)).toEqual([]);
    await cluster.query(`ALTER TABLE ${table} DROP CONSTRAINT rejected`);
    await group.untilHealed(node);
    const decisions = await cluster.query(
      `SELECT reasons FROM ${group.schema}.proxywarden_decisions WHERE node = $1 AND verdict = 'hold'`,
      [node],
    );
    expect(decisions).toContainEqual({ reasons: ["journal"] });
  },
  TEST_MS_MAX,
);

test(
  "after a newer version has migrated the schema the older leader heals until it is stopped, and no older daemon leads after it",
  async () => {
    const { cluster, group } = pair();
    const { leader, standby } = await pair().leaderAndStandby();
    const setVersion = (version: number) =>
      cluster.query(`UPDATE ${group.schema}.schema_version SET version = ${version}`);
    const known = VERSIONS.last;
    await setVersion(known + 1);
    await group.untilHealed(group.failNode());
    leader.kill("SIGTERM");
    expect((await leader.ended).code).toBe(0);
    const refusal = `has schema version ${known + 1}, but this version of proxywarden supports ${known} at most; run the version that wrote it`;
    await until(standby.err, () => standby.err().includes(refusal));
    expect([await standby.isLeading(), (await standby.ask("/-/healthy")).status]).toEqual([false, 200]);
    await setVersion(known);
    await untilLeading(standby);
  },
  TEST_MS_MAX,
);
