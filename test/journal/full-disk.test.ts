import { mkdtempSync, openSync, renameSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants, DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createJournal } from "../../src/journal/journal.ts";
import { migrate } from "../../src/journal/migrations.ts";
import { openStateStore } from "../../src/journal/sqlite.ts";
import { timerOf } from "./arbitrary-changes.ts";
import { killOtherProcesses, startOtherProcess } from "./other-process.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "refusal-"));
});
afterEach(() => {
  killOtherProcesses();
  rmSync(folder, { recursive: true });
});

function opened() {
  const store = openStateStore(folder);
  if (!store.ok) throw new Error(store.error.message);
  return store.value;
}

const timers = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => ({ kind: "timer", row: timerOf(`${prefix}_${index}`) }) as const);

const LARGE = 20_000;

describe("a full disk", () => {
  test("makes a commit throw without a trace, and the next one succeeds once there is space", () => {
    const database = new DatabaseSync(join(folder, "proxywarden.db"));
    database.exec("PRAGMA journal_mode = WAL");
    migrate(database);
    const journal = createJournal(database);
    journal.commit(timers(1, "before"));
    const { page_count: pages } = database.prepare("PRAGMA page_count").get()!;
    database.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`);
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(() => journal.commit(timers(LARGE, "large"))).toThrow("database or disk is full");
      expect(database.isTransaction).toBe(false);
    }
    journal.commit(timers(1, "small"));
    database.exec("PRAGMA max_page_count = 1000000");
    journal.commit(timers(LARGE, "large"));
    expect(journal.load(0).timers).toHaveLength(LARGE + 2);
    database.close();
  });

  test("makes writes throw also if the operating system rejects them", async () => {
    const body = `
      process.on("SIGXFSZ", () => {});
      const { journal, calls } = store.value;
      const commit = (count, prefix) => {
        const row = (index) => ({ policy: "p", node: prefix + index, state: "pending", trueMs: 0, clearMs: 0, since: 1 });
        try {
          journal.commit(Array.from({ length: count }, (_, index) => ({ kind: "timer", row: row(index) })));
          say("written");
        } catch (error) { say(error.message); }
      };
      commit(1, "before"); commit(${LARGE}, "large"); calls.add("2026-11-01", 1); commit(1, "after");`;
    const other = startOtherProcess(folder, body, 600_000);
    expect(await other.line()).toBe("written");
    expect(await other.line()).toBe("disk I/O error");
    expect(await other.line()).toBe("written");
    await other.kill();
    const store = opened();
    expect(store.journal.load(0).timers.map(({ node }) => node)).toEqual(["after0", "before0"]);
    expect(store.calls.since("2026-11-01")).toBe(1);
    store.close();
  });
});

describe("a database that is damaged while it is in use", () => {
  test.each([
    ["noise over all but its first page", (path: string) => overwrite(path, 4_096, 0xa5)],
    ["zeros over all but its first page", (path: string) => overwrite(path, 4_096, 0)],
    ["half of it cut off", (path: string) => truncateSync(path, 4_096 * Math.floor(statSync(path).size / 8_192))],
  ])("%s: commits throw, nothing hangs, and the next start reports damage", (_, damage) => {
    const store = opened();
    // Larger than what SQLite keeps of it in memory.
    store.journal.commit(timers(4 * LARGE, "timer"));
    const path = join(folder, "proxywarden.db");
    const other = new DatabaseSync(path);
    other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    other.close();
    damage(path);
    expect(() => store.journal.commit(timers(4 * LARGE, "timer"))).toThrow(/malformed|not a database|I\/O error/);
    expect(() => store.journal.load(0)).toThrow(/malformed|not a database|I\/O error/);
    expect(() => store.close()).not.toThrow();
    expect(openStateStore(folder)).toMatchObject({ ok: false, error: { kind: "damaged" } });
  });
});

describe("a store whose files are moved or removed", () => {
  test.each(["proxywarden.db", "proxywarden.lock"])(
    "%s: what is committed would be lost, or be a second daemon's, so it throws",
    (name) => {
      const store = opened();
      const path = join(folder, name);
      store.journal.commit(timers(1, "first"));
      renameSync(path, `${path}.away`);
      expect(() => store.journal.commit(timers(1, "second"))).toThrow(`${path} was moved, removed or replaced`);
      expect(() => store.journal.prune(1)).toThrow("was moved, removed or replaced");
      writeFileSync(path, "");
      expect(() => store.journal.commit(timers(1, "second"))).toThrow(`${path} was moved, removed or replaced`);
      renameSync(`${path}.away`, path);
      store.journal.commit(timers(1, "second"));
      expect(store.journal.load(0).timers).toHaveLength(2);
      store.close();
    },
  );
});

test("closes the database if a rollback fails: later writes throw, and the transaction is gone", () => {
  const path = join(folder, "proxywarden.db");
  const database = new DatabaseSync(path);
  migrate(database);
  const journal = createJournal(database);
  journal.commit(timers(1, "before"));
  database.setAuthorizer((action, operation) =>
    action === constants.SQLITE_TRANSACTION && operation === "ROLLBACK" ? constants.SQLITE_DENY : constants.SQLITE_OK,
  );
  const refused = { kind: "timer", row: timerOf("bad", Number.NaN) } as const;
  expect(() => journal.commit([...timers(1, "lost"), refused])).toThrow("NOT NULL constraint failed: timers.true_ms");
  expect(() => journal.commit(timers(1, "later"))).toThrow("not open");
  const again = new DatabaseSync(path);
  expect(
    createJournal(again)
      .load(0)
      .timers.map(({ node }) => node),
  ).toEqual(["before_0"]);
  again.close();
});

test("a commit throws at once while another process writes, and succeeds afterwards", () => {
  const store = opened();
  const other = new DatabaseSync(join(folder, "proxywarden.db"));
  other.exec("BEGIN IMMEDIATE");
  expect(() => store.journal.commit(timers(1, "timer"))).toThrow("database is locked");
  other.exec("ROLLBACK");
  store.journal.commit(timers(1, "timer"));
  other.close();
  store.close();
});

function overwrite(path: string, from: number, byte: number) {
  const file = openSync(path, "r+");
  writeSync(file, Buffer.alloc(statSync(path).size - from, byte), 0, undefined, from);
}
