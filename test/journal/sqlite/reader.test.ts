import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { VERSIONS } from "../../../src/journal/sqlite/migrations.ts";
import { openSqliteStore, readSqliteState } from "../../../src/journal/sqlite/store.ts";
import type { StateReader } from "../../../src/journal/state-export.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { actionOf, decisionOf, episodeOf, holdOf, timerOf } from "../arbitrary-changes.ts";
import { startOtherProcess } from "./other-process.ts";
import { useStoreFolder } from "./store-folder.ts";

const folder = useStoreFolder();

async function reading<T>(read: (reader: StateReader) => Promise<T>): Promise<T> {
  return orThrow(await readSqliteState(folder.path, read));
}

const rows: readonly JournalChange[] = [
  { kind: "timer", row: timerOf("node_1", 60) },
  { kind: "timer", row: timerOf("node_2", 60) },
  { kind: "episode", row: episodeOf(1) },
  { kind: "action", row: actionOf(2, "ep-1") },
  { kind: "decision", row: decisionOf(3) },
  { kind: "hold", row: holdOf("node_1") },
  { kind: "hold", row: holdOf("node_2") },
  { kind: "fact", key: "remediation.pause", value: "by hand" },
];

async function expectRows(reader: StateReader) {
  expect(await reader.timers("node_1")).toEqual([timerOf("node_1", 60)]);
  expect(await reader.episodes({ node: "node_1", limit: 9 })).toEqual([episodeOf(1)]);
  expect(await reader.actions({ limit: 9 })).toEqual([actionOf(2, "ep-1")]);
  expect(await reader.decisions({ until: 3, limit: 9 })).toEqual([decisionOf(3)]);
  expect(await reader.holds("node_1")).toEqual([holdOf("node_1")]);
  expect(await reader.facts()).toEqual(new Map([["remediation.pause", "by hand"]]));
}

describe("a journal can be read", () => {
  test("while a daemon holds its folder", async () => {
    const store = folder.open();
    await store.journal.commit(rows);
    await reading(expectRows);
    expect(openSqliteStore(folder.path)).toMatchObject({ ok: false, error: { kind: "held" } });
    await store.journal.commit(rows.filter(({ kind }) => kind !== "decision"));
    await store.close();
  });

  test("after its daemon has stopped, without an effect on the next one", async () => {
    const store = folder.open();
    await store.journal.commit(rows);
    await store.close();
    await reading(expectRows);
    const next = folder.open();
    expect((await next.journal.load(0)).timers).toHaveLength(2);
    await next.close();
    expect(readdirSync(folder.path).filter((name) => name.endsWith("-wal"))).toEqual([]);
  });

  test("after its daemon was killed, up to the last commit", async () => {
    const other = startOtherProcess(
      folder.path,
      `await store.value.journal.commit(${JSON.stringify(rows)}); say("committed");`,
    );
    expect(await other.line()).toBe("committed");
    await other.kill();
    const log = readFileSync(`${folder.database}-wal`);
    await reading(expectRows);
    // What is to be done about it is the next daemon's.
    expect(readFileSync(`${folder.database}-wal`).equals(log)).toBe(true);
  });

  test("as a snapshot that later writes do not change", async () => {
    const store = folder.open();
    await store.journal.commit(rows);
    await reading(async (reader) => {
      await store.journal.commit([
        { kind: "timer_gone", policy: "reboot-offline", node: "node_1" },
        { kind: "hold_gone", policy: null, node: "node_1" },
        { kind: "decision", row: decisionOf(2) },
      ]);
      await expectRows(reader);
      expect(await reading((later) => later.timers("node_1"))).toEqual([]);
    });
    await store.close();
  });

  test("without a change to the database", async () => {
    const store = folder.open();
    await store.journal.commit(rows);
    await store.close();
    const before = readFileSync(folder.database);
    await reading(expectRows);
    expect(readFileSync(folder.database).equals(before)).toBe(true);
  });
});

describe("reading fails with a reason", () => {
  async function failure(of = folder.path) {
    const state = await readSqliteState(of, () => Promise.resolve());
    return state.ok ? "it was read" : `${state.error.kind}: ${state.error.message}`;
  }

  test("in a folder without a database, and creates none", async () => {
    expect(await failure()).toBe(
      `missing: ${folder.path} holds no journal; state.path must be the folder that a daemon has used`,
    );
    expect(await failure(join(folder.path, "not", "there"))).toContain("missing: ");
    writeFileSync(join(folder.path, "file"), "");
    expect(await failure(join(folder.path, "file"))).toContain("missing: ");
    expect(readdirSync(folder.path)).toEqual(["file"]);
  });

  test("for a database that no daemon has migrated yet, which is not changed", async () => {
    new DatabaseSync(folder.database).close();
    const message = `older: ${folder.database} has schema version 0, but this version of proxywarden reads only ${VERSIONS.last}; start the daemon of this version on it once, which migrates it`;
    expect(await failure()).toBe(message);
    expect(await failure()).toBe(message);
  });

  test("for a database of a later version", async () => {
    const later = new DatabaseSync(folder.database);
    later.exec("PRAGMA user_version = 99");
    later.close();
    expect(await failure()).toContain(`unsupported: ${folder.database} has schema version 99`);
  });

  test("for a database of another program with the same version", async () => {
    const other = new DatabaseSync(folder.database);
    other.exec(`PRAGMA user_version = ${VERSIONS.last}`);
    other.close();
    const state = await readSqliteState(folder.path, (reader) => reader.facts());
    expect(state).toMatchObject({
      ok: false,
      error: { kind: "damaged", message: expect.stringContaining(`${folder.database} is damaged (no such table`) },
    });
  });

  test("for a file that is not a database", async () => {
    writeFileSync(folder.database, "This is no database. ".repeat(100));
    expect(await failure()).toContain(`damaged: ${folder.database} is damaged`);
  });
});
