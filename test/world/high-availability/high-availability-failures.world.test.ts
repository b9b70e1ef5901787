import { execFileSync } from "node:child_process";
import { appendFileSync, cpSync, rmSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { VERSIONS } from "../../../src/journal/postgres/migrations.ts";
import { type PostgresCluster, startPostgres } from "../../harness/servers/postgres-cluster.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { type Member, until } from "../../integration/high-availability/member.ts";
import { type ProcessGroup, startProcessGroup } from "../../integration/high-availability/process-group.ts";
import { CRASH_BOUNDARIES } from "../../integration/remediation/crash-point.ts";
import type { PostHooks } from "../../integration/remediation/recording-proxy.ts";

const ROOT = join(import.meta.dirname, "../../..");

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres(["fsync = off"]);
}, MINUTE_MS);
afterAll(() => cluster.remove());

async function startGroup(on = cluster): Promise<ProcessGroup> {
  const group = await startProcessGroup(on);
  onTestFinished(() => group.stop());
  return group;
}

const postsTo = (group: ProcessGroup, node: string) =>
  group.posts.filter(({ path }) => path.includes(node)).map(({ body }) => body);

const untilLeading = (member: Member) => until(() => `${member.name} leads:\n${member.err()}`, member.isLeading);

const GRACEFUL = '{"force":false}';
const FORCED = '{"force":true}';

test("a leader that is killed at any boundary of the journal or of a POST is succeeded, and no step is sent twice", async () => {
  const group = await startGroup();
  const kills: readonly { readonly at: string; readonly hooks?: (leader: Member) => PostHooks }[] = [
    ...CRASH_BOUNDARIES.flatMap((boundary) =>
      ["before", "during", "after"].map((when) => ({ at: `${when} ${boundary}` })),
    ),
    { at: "when the POST arrives", hooks: (leader) => ({ arrived: () => killed(leader).then(() => false) }) },
    { at: "when the POST was executed", hooks: (leader) => ({ answered: () => killed(leader) }) },
  ];
  const killed = async (leader: Member) => {
    leader.kill("SIGKILL");
    await leader.ended;
  };
  const results: Record<string, readonly string[]> = {};
  let leader: Member | null = null;
  for (const [index, { at, hooks }] of kills.entries()) {
    const node = group.pickNode();
    const [when, boundary] = at.split(" ") as never[];
    const next = await group.start(`daemon-${index}`, {
      crash: hooks ? null : { when: when!, boundary: boundary!, node },
    });
    leader?.kill("SIGTERM");
    await untilLeading(next);
    leader = await group.start(`standby-${index}`);
    await group.untilHealing();
    group.setHooks(hooks?.(next) ?? {});
    group.failNode(node);
    await next.ended;
    group.setHooks({});
    await group.untilHealed(node);
    expect(group.status(node), at).toBe("online");
    expect(await group.violations(), at).toEqual([]);
    results[at] = postsTo(group, node);
  }
  // Between the commit of `posting` and the POST, and if the service does not execute it, the next step follows.
  const { "after posting": unsent, "when the POST arrives": lost, "during posting": either, ...others } = results;
  expect({ unsent, lost }).toEqual({ unsent: [FORCED], lost: [GRACEFUL, FORCED] });
  expect([[GRACEFUL], [FORCED]]).toContainEqual(either);
  expect(Object.entries(others).filter(([, posts]) => posts.join() !== GRACEFUL)).toEqual([]);
});

test.each([
  [0, HOUR_MS, -HOUR_MS],
  [-HOUR_MS, HOUR_MS, 0],
  [HOUR_MS, -HOUR_MS, 0],
])(
  "daemons whose wall clocks are wrong by %i, %i and %i ms succeed each other, heal, and keep the limits",
  async (...skews) => {
    const group = await startGroup();
    for (const [index, clockSkewMs] of skews.entries()) {
      const before = group.members();
      const daemon = await group.start(`daemon-${index}`, { clockSkewMs });
      for (const { kill } of before) kill(index === 1 ? "SIGKILL" : "SIGTERM");
      await untilLeading(daemon);
      await group.untilHealed(group.failNode());
    }
    expect(group.posts.map(({ userAgent, body }) => `${userAgent} ${body}`)).toEqual(
      [0, 1, 2].map((index) => `proxywarden/daemon-${index} ${GRACEFUL}`),
    );
    expect(await group.violations()).toEqual([]);
  },
);

test("while the disk of the database is full, the leader exports, holds actions, and loses nothing recorded", async () => {
  const disk = createTempFolder().path;
  // Needs root.
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=110m,mode=777", "tmpfs", disk]);
  onTestFinished(() => void execFileSync("umount", [disk]));
  const small = await startPostgres(["max_wal_size = 32MB", "min_wal_size = 32MB"], undefined, disk);
  onTestFinished(small.remove);
  const group = await startGroup(small);
  await group.start("one");
  await group.start("two");
  const leader = await group.untilHealing();
  const filler = join(disk, "filler");
  writeFileSync(filler, "");
  for (let free = 1; free > 0; free = statfsSync(disk).bfree) appendFileSync(filler, Buffer.alloc(4_096));
  const node = group.failNode();
  const writable = async () => (await leader.scrape()).sum("proxywarden_journal_writable");
  await until(
    () => "the journal can't be written",
    async () => (await writable()) === 0,
  );
  const calls = group.service.serial;
  await until(
    () => "polling goes on",
    () => group.service.serial > calls + 10,
  );
  expect([(await leader.scrape()).sum("proxynet_nodes"), await writable(), group.posts]).toEqual([60, 0, []]);
  rmSync(filler);
  await group.untilHealed(node);
  expect(await leader.isLeading()).toBe(true);
  const held = await small.query(`SELECT reasons FROM ${group.schema}.proxywarden_decisions WHERE verdict = 'hold'`);
  expect(held).toContainEqual({ reasons: ["journal"] });
  expect(await group.violations()).toEqual([]);
});

/** Copies the program and adds a migration. Returns the copy of `shared-daemon.ts`. */
function copyNewerVersion(): string {
  const folder = createTempFolder().path;
  for (const path of ["src", "package.json", "test/integration/high-availability", "test/integration/remediation"])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  appendFileSync(
    join(folder, "src/journal/postgres/migrations.ts"),
    "(MIGRATIONS as unknown[]).push((s: string) => 'ALTER TABLE ' + s + '.calls ADD COLUMN newer text');\nVERSIONS.last++;\n",
  );
  return join(folder, "test/integration/high-availability/shared-daemon.ts");
}

test("during a rolling upgrade, the older leader heals until it is stopped, and no older daemon leads after that", async () => {
  const script = copyNewerVersion();
  const group = await startGroup();
  const version = async () => (await cluster.query(`SELECT version FROM ${group.schema}.schema_version`))[0]!.version;
  const older = await group.start("older");
  await group.untilHealing();
  const olderStandby = await group.start("older-standby");
  expect(await version()).toBe(VERSIONS.last);

  const newer = await group.start("newer", { script });
  expect([await version(), await older.isLeading()]).toEqual([VERSIONS.last + 1, true]);
  await group.untilHealed(group.failNode());
  older.kill("SIGTERM");
  expect((await older.ended).code).toBe(0);
  await untilLeading(newer);
  await group.untilHealed(group.failNode());

  newer.kill("SIGKILL");
  const refusal = `has schema version ${VERSIONS.last + 1}, but this version of proxywarden supports ${VERSIONS.last} at most`;
  await until(olderStandby.err, () => olderStandby.err().includes(refusal));
  await expect(group.start("older-again")).rejects.toThrow(refusal);
  expect((await olderStandby.ask("/-/healthy")).status).toBe(200);
  await group.start("newer-again", { script });
  await group.untilHealed(group.failNode());
  expect(group.posts.map(({ userAgent }) => userAgent)).toEqual(
    ["older", "newer", "newer-again"].map((name) => `proxywarden/${name}`),
  );
  expect(await group.violations()).toEqual([]);
});
