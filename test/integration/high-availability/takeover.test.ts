import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type DurationMs, HOUR_MS } from "../../../src/base/duration.ts";
import { MIGRATIONS } from "../../../src/journal/postgres/migrations.ts";
import { type PostgresCluster, startPostgres } from "../../harness/postgres-cluster.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { type Member, until } from "./member.ts";
import { type ProcessGroup, startProcessGroup } from "./process-group.ts";

const TEST_MS_MAX = 600_000;

let cluster: PostgresCluster;
/** Two daemons with wrong wall clocks, which all tests share. */
let group: ProcessGroup;
let started = 0;
beforeAll(async () => {
  cluster = await startPostgres(["fsync = off"]);
  group = await startProcessGroup(cluster);
}, 60_000);
afterAll(async () => {
  await group.stop();
  await cluster.remove();
});
afterEach(async () => {
  group.setHooks({});
  expect(await group.violations()).toEqual([]);
});

/** The wall clocks of the daemons, which leases and limits do not depend on. */
const CLOCK_SKEWS_MS: readonly DurationMs[] = [0, HOUR_MS, -HOUR_MS];

function startMember(): Promise<Member> {
  const clockSkewMs = CLOCK_SKEWS_MS[started % CLOCK_SKEWS_MS.length]!;
  started++;
  return group.start(`daemon-${started}`, { clockSkewMs });
}

/** Waits until one of two daemons would act. Starts those that are missing. */
async function leaderAndStandby() {
  while (group.members().length < 2) await startMember();
  const leader = await group.untilHealing();
  return { leader, standby: group.members().find((member) => member !== leader)! };
}

const untilStandingBy = (member: Member) =>
  until(
    () => `${member.name} stands by:\n${member.err()}`,
    async () => (await member.scrape().catch(() => null))?.sum("proxynet_nodes") === null,
  );

const untilLeading = (member: Member) => until(() => `${member.name} leads:\n${member.err()}`, member.isLeading);

const postsTo = (node: string) => group.posts.filter(({ path }) => path.includes(node));

test(
  "the leader exports the network, and a standby shows the journal, names the leader and forwards commands to it",
  async () => {
    const { leader, standby } = await leaderAndStandby();
    const node = group.failNode();
    await group.untilHealed(node);
    const [leading, standing] = [await leader.scrape(), await standby.scrape()];
    expect([leading.sum("proxynet_nodes"), standing.sum("proxynet_nodes")]).toEqual([60, null]);
    expect([leading.sum("proxywarden_leader"), standing.sum("proxywarden_leader")]).toEqual([1, 0]);
    expect((await standby.ask("/-/ready")).status).toBe(200);
    const { name } = leader;
    const url = `http://${name}.example.net`;
    expect(await standby.get("/api/v1/status")).toMatchObject({ nodes: null, leader: { is_this: false, name, url } });
    expect(await leader.get("/api/v1/status")).toMatchObject({ nodes: { total: 60 }, leader: { is_this: true, name } });
    expect(await standby.actionsOf(node)).toEqual(await leader.actionsOf(node));
    expect(await standby.get(`/api/v1/nodes/${node}`)).toMatchObject({ known: false, decisions: expect.any(Array) });

    const reason = { reason: "deploy until 14:00" };
    const paused = await standby.order("/api/v1/pause", reason);
    expect(paused.status).toBe(200);
    expect(paused.json.message).toMatch(
      new RegExp(`^paused: deploy until 14:00; .*; executed by the leader, ${name} \\(${url}\\)$`),
    );
    const operator = "admin";
    expect(await leader.get("/api/v1/status")).toMatchObject({ warden: { paused: { ...reason, operator } } });
    await until(
      () => "the standby shows the pause",
      async () => {
        const { warden } = await standby.get<{ readonly warden: { readonly paused: unknown } }>("/api/v1/status");
        return warden.paused;
      },
    );
    expect(await standby.order("/api/v1/actions/act-999/approve")).toMatchObject({ status: 404 });
    expect((await standby.ask("/api/v1/pause", { method: "POST" })).status).toBe(401);
    leader.kill("SIGSTOP");
    // Answered with the id of the order, or by this daemon itself if it has taken over by then.
    expect([200, 202]).toContain((await standby.order("/api/v1/resume")).status);
    leader.kill("SIGCONT");
  },
  TEST_MS_MAX,
);

test(
  "a leader that is killed during a POST is succeeded: the POST is in doubt, is verified, and is not sent again",
  async () => {
    const { leader, standby } = await leaderAndStandby();
    group.setHooks({
      async answered() {
        leader.kill("SIGKILL");
        await leader.ended;
      },
    });
    const node = group.failNode();
    await leader.ended;
    group.setHooks({});
    await group.untilHealed(node);
    expect(await standby.actionsOf(node)).toMatchObject([{ outcome: "verified", in_doubt: true }]);
    expect(postsTo(node)).toHaveLength(1);
  },
  TEST_MS_MAX,
);

test(
  "a leader that is stopped for longer than its lease during a POST goes on as a standby, and sends nothing more",
  async () => {
    const { leader, standby } = await leaderAndStandby();
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
    expect(postsTo(node)).toHaveLength(1);
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
    const { leader, standby } = await leaderAndStandby();
    leader.database.drop = drop;
    const node = group.failNode();
    await untilLeading(standby);
    expect(await leader.isLeading()).toBe(false);
    await group.untilHealed(node);
    const posts = postsTo(node);
    // The leader may have sent the first step before it noticed. Then the other one has not.
    expect(posts.filter(({ body }) => body === '{"force":false}')).toHaveLength(1);
    leader.database.drop = null;
    await untilStandingBy(leader);
    expect(postsTo(node)).toEqual(posts);
  },
  TEST_MS_MAX,
);

test(
  "while the database is down no daemon leads or takes a step, and one heals once the database is back",
  async () => {
    const { leader, standby } = await leaderAndStandby();
    await cluster.stop("immediate");
    await until(
      () => "no daemon leads",
      async () => !(await leader.isLeading()),
    );
    const node = group.failNode();
    expect([(await leader.ask("/-/healthy")).status, (await standby.ask("/-/healthy")).status]).toEqual([200, 200]);
    expect((await leader.ask("/-/ready")).status).toBe(503);
    expect(postsTo(node)).toEqual([]);
    await cluster.start();
    await group.untilHealed(node);
    expect(postsTo(node)).toHaveLength(1);
  },
  TEST_MS_MAX,
);

test(
  "while the database can't be written the leader exports what it has and holds actions, and nothing recorded is lost",
  async () => {
    const { leader, standby } = await leaderAndStandby();
    // A new leader would decide again.
    standby.kill("SIGKILL");
    const setReadOnly = async (value: "on" | "off") => {
      await cluster.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await cluster.query("SELECT pg_reload_conf()");
    };
    await setReadOnly("on");
    const node = group.failNode();
    await until(
      () => "the journal can't be written",
      async () => (await leader.scrape()).sum("proxywarden_journal_writable") === 0,
    );
    const page = await leader.scrape();
    expect(page.sum("proxynet_nodes")).toBe(60);
    expect(postsTo(node)).toEqual([]);
    await setReadOnly("off");
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
    const { leader, standby } = await leaderAndStandby();
    const setVersion = (version: number) =>
      cluster.query(`UPDATE ${group.schema}.schema_version SET version = ${version}`);
    const known = MIGRATIONS.length;
    await setVersion(known + 1);
    await group.untilHealed(group.failNode());
    leader.kill("SIGTERM");
    expect((await leader.ended).code).toBe(0);
    const refusal = `has version ${known + 1}, and this proxywarden knows ${known} at most; run the version that wrote it`;
    await until(standby.err, () => standby.err().includes(refusal));
    expect([await standby.isLeading(), (await standby.ask("/-/healthy")).status]).toEqual([false, 200]);
    await setVersion(known);
    await untilLeading(standby);
  },
  TEST_MS_MAX,
);
