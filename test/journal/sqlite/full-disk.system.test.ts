import { openSync, renameSync, statSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { constants, DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createJournal } from "../../../src/journal/sqlite/journal.ts";
import { migrate } from "../../../src/journal/sqlite/migrations.ts";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { timerOf } from "../arbitrary-changes.ts";
import { startOtherProcess } from "./other-process.ts";
import { useStoreFolder } from "./store-folder.ts";

const folder = useStoreFolder();

const timers = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => ({ kind: "timer", row: timerOf(`${prefix}_${index}`) }) as const);

const LARGE = 20_000;

describe("a full disk", () => {
  test("makes a commit throw without a trace, and the next one succeeds once there is space", async () => {
    const database = new DatabaseSync(folder.database);
    database.exec("PRAGMA journal_mode = WAL");
    migrate(database);
    const journal = createJournal(database);
    await journal.commit(timers(1, "before"));
    const { page_count: pages } = database.prepare("PRAGMA page_count").get()!;
    database.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`);
    for (let attempt = 0; attempt < 3; attempt++) {
      await expect(journal.commit(timers(LARGE, "large"))).rejects.toThrow("database or disk is full");
      expect(database.isTransaction).toBe(false);
    }
    await journal.commit(timers(1, "small"));
    database.exec("PRAGMA max_page_count = 1000000");
    await journal.commit(timers(LARGE, "large"));
    expect((await journal.load(0)).timers).toHaveLength(LARGE + 2);
    database.close();
  });

  test("makes writes throw also if the operating system rejects them", async () => {
    const body = `
      process.on("SIGXFSZ", () => {});
      const { journal, calls } = store.value;
      const commit = async (count, prefix) => {
        const row = (index) => ({ policy: "p", node: prefix + index, state: "pending", trueMs: 0, clearMs: 0, since: 1 });
        try {
          await journal.commit(Array.from({ length: count }, (_, index) => ({ kind: "timer", row: row(index) })));
          say("written");
        } catch (error) { say(error.message); }
      };
      await commit(1, "before"); await commit(${LARGE}, "large"); await calls.add("2026-11-01", 1); await commit(1, "after");`;
    const other = startOtherProcess(folder.path, body, 600_000);
    expect(await other.line()).toBe("written");
    expect(await other.line()).toBe("disk I/O error");
    expect(await other.line()).toBe("written");
    await other.kill();
    const store = folder.open();
    expect((await store.journal.load(0)).timers.map(({ node }) => node)).toEqual(["after0", "before0"]);
    expect(store.calls.since("2026-11-01")).toBe(1);
    await store.close();
  });
});

describe("a database that is damaged while it is in use", () => {
  test.each([
    ["noise over all but its first page", (path: string) => overwrite(path, 4_096, 0xa5)],
    ["zeros over all but its first page", (path: string) => overwrite(path, 4_096, 0)],
    ["half of it cut off", (path: string) => truncateSync(path, 4_096 * Math.floor(statSync(path).size / 8_192))],
  ])("%s: commits throw, nothing hangs, and the next start reports damage", async (_, damage) => {
    const store = folder.open();
    // Larger than what SQLite keeps of it in memory.
    await store.journal.commit(timers(4 * LARGE, "timer"));
    const path = folder.database;
    const other = new DatabaseSync(path);
    other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    other.close();
    damage(path);
    await expect(store.journal.commit(timers(4 * LARGE, "timer"))).rejects.toThrow(
      /malformed|not a database|I\/O error/,
    );
    await expect(store.journal.load(0)).rejects.toThrow(/malformed|not a database|I\/O error/);
    await store.close();
    expect(openSqliteStore(folder.path)).toMatchObject({ ok: false, error: { kind: "damaged" } });
  });
});

describe("a store whose files are moved or removed", () => {
  test.each(["proxywarden.db", "proxywarden.db-wal", "proxywarden.db-shm", "proxywarden.lock"])(
    "%s: what is committed would be lost, or be a second daemon's, so it throws",
    async (name) => {
      const store = folder.open();
      const path = join(folder.path, name);
      await store.journal.commit(timers(1, "first"));
      renameSync(path, `${path}.away`);
      await expect(store.journal.commit(timers(1, "second"))).rejects.toThrow(`${path} was moved, removed or replaced`);
      await expect(store.journal.prune(1)).rejects.toThrow("was moved, removed or replaced");
      writeFileSync(path, "");
      await expect(store.journal.commit(timers(1, "second"))).rejects.toThrow(`${path} was moved, removed or replaced`);
      renameSync(`${path}.away`, path);
      await store.journal.commit(timers(1, "second"));
      expect((await store.journal.load(0)).timers).toHaveLength(2);
      await store.close();
    },
  );
});

test("closes the database if a rollback fails: later writes throw, and the transaction is gone", async () => {
  const path = folder.database;
  const database = new DatabaseSync(path);
  migrate(database);
  const journal = createJournal(database);
  await journal.commit(timers(1, "before"));
  database.setAuthorizer((action, operation) =>
    action === constants.SQLITE_TRANSACTION && operation === "ROLLBACK" ? constants.SQLITE_DENY : constants.SQLITE_OK,
  );
  const refused = { kind: "timer", row: timerOf("bad", Number.NaN) } as const;
  await expect(journal.commit([...timers(1, "lost"), refused])).rejects.toThrow(
    "NOT NULL constraint failed: timers.true_ms",
  );
  await expect(journal.commit(timers(1, "later"))).rejects.toThrow("restart the daemon");
  const again = new DatabaseSync(path);
  expect((await createJournal(again).load(0)).timers.map(({ node }) => node)).toEqual(["before_0"]);
  again.close();
});

test("a commit throws immediately while another process writes, and succeeds afterwards", async () => {
  const store = folder.open();
  const other = new DatabaseSync(folder.database);
  other.exec("BEGIN IMMEDIATE");
  await expect(store.journal.commit(timers(1, "timer"))).rejects.toThrow("database is locked");
  other.exec("ROLLBACK");
  await store.journal.commit(timers(1, "timer"));
  other.close();
  await store.close();
});

function overwrite(path: string, from: number, byte: number) {
  const file = openSync(path, "r+");
  writeSync(file, Buffer.alloc(statSync(path).size - from, byte), 0, undefined, from);
}
