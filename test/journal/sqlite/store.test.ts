import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { VERSIONS } from "../../../src/journal/sqlite/migrations.ts";
import { createMemoryStateStore, openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { startOtherProcess } from "./other-process.ts";
import { openStore, useStoreFolder } from "./store-folder.ts";

const folder = useStoreFolder();

test("a folder in a file system that can't hold folders, such as /proc, is rejected with the reason", () => {
  const opened = openSqliteStore("/proc/proxywarden/state");
  expect(opened.ok ? null : opened.error.message).toMatch(
    /can't hold state: ENOENT.*must be a writable folder with free space$/,
  );
});

describe.each([
  ["on disk", () => folder.open()],
  ["in memory", createMemoryStateStore],
])("a store %s", async (_, open) => {
  test("counts the calls from a day on", async () => {
    const store = open();
    expect(store.calls.since("2026-11-01")).toBe(0);
    for (let call = 0; call < 3; call++) await store.calls.add("2026-11-01", 1);
    await store.calls.add("2026-12-01", 1);
    expect(store.calls.since("2026-11-01")).toBe(4);
    expect(store.calls.since("2026-11-02")).toBe(1);
    await store.calls.add("2026-12-01", 5);
    expect(store.calls.since("2026-12-01")).toBe(6);
    await store.close();
  });

  test("keeps the exact last value of a fact", async () => {
    const store = open();
    await store.journal.commit([{ kind: "fact", key: "baseline", value: "1" }]);
    await store.journal.commit([
      { kind: "fact", key: "baseline", value: 'null\n"é\u{1f600}' },
      { kind: "fact", key: "", value: "" },
    ]);
    expect(Object.fromEntries(await store.journal.facts())).toEqual({ baseline: 'null\n"é\u{1f600}', "": "" });
    await store.close();
  });

  test("may be closed twice", async () => {
    const store = open();
    await store.close();
    await store.close();
  });
});

describe("the store's folder", () => {
  test("is created if missing, and keeps its data", async () => {
    const path = join(folder.path, "deep", "state");
    const first = openStore(path);
    await first.calls.add("2026-11-01", 1);
    await first.journal.commit([{ kind: "fact", key: "key", value: "value" }]);
    await first.close();
    const second = openStore(path);
    expect(second.calls.since("2026-11-01")).toBe(1);
    expect((await second.journal.facts()).get("key")).toBe("value");
    await second.close();
  });

  test("is opened only once at a time, even within a process", async () => {
    const first = folder.open();
    expect(openSqliteStore(folder.path)).toMatchObject({ ok: false, error: { kind: "held" } });
    await first.calls.add("2026-11-01", 1);
    await first.close();
    folder.open().close();
  });

  test("is held while another process has it open, and released when that process is killed", async () => {
    const other = startOtherProcess(folder.path, `say("holding")`);
    expect(await other.line()).toBe("holding");
    expect(openSqliteStore(folder.path)).toEqual({
      ok: false,
      error: {
        kind: "held",
        message: `${folder.path} is held by another proxywarden; stop it, or give this one a state.path of its own`,
      },
    });
    await other.kill();
    folder.open().close();
  });

  test("is held until its process ends, even if the store was garbage collected", async () => {
    const collect = `
      const { setFlagsFromString } = await import("node:v8");
      const { runInNewContext } = await import("node:vm");
      setFlagsFromString("--expose-gc");
      setTimeout(() => say(String(runInNewContext("gc")() ?? "collected")), 20);`;
    const other = startOtherProcess(folder.path, collect);
    expect(await other.line()).toBe("collected");
    expect(openSqliteStore(folder.path)).toMatchObject({ ok: false, error: { kind: "held" } });
    await other.kill();
  });

  test("is held for other processes while we have it open", async () => {
    const store = folder.open();
    expect(await startOtherProcess(folder.path, "").line()).toBe("held");
    await store.close();
  });

  test("can be read by others while it is held", async () => {
    const store = folder.open();
    await store.calls.add("2026-11-01", 1);
    const reader = new DatabaseSync(folder.database, { readOnly: true });
    expect(reader.prepare("SELECT day, used FROM calls").all()).toEqual([{ day: "2026-11-01", used: 1 }]);
    await reader.close();
    await store.close();
  });

  test("that is unusable is named in the error", async () => {
    writeFileSync(join(folder.path, "file"), "");
    for (const path of [join(folder.path, "file"), join(folder.path, "file", "below")]) {
      const store = openSqliteStore(path);
      expect(store).toMatchObject({ ok: false, error: { kind: "unusable" } });
      expect(store.ok ? "" : store.error.message).toContain(path);
      expect(store.ok ? "" : store.error.message).toContain(
        `${join(folder.path, "file")} is not a folder; state.path must be a writable folder`,
      );
    }
  });
});

describe("the database", () => {
  test("has every counted call, even if the process is killed", async () => {
    const other = startOtherProcess(
      folder.path,
      `for (;;) { await store.value.calls.add("2026-11-01", 1); say("counted"); }`,
    );
    for (let call = 0; call < 50; call++) expect(await other.line()).toBe("counted");
    await other.kill();
    const store = folder.open();
    expect(store.calls.since("2026-11-01")).toBeGreaterThanOrEqual(50);
    await store.close();
  });

  test("uses a write-ahead log, so that readers and the writer do not block each other", async () => {
    folder.open().close();
    const database = new DatabaseSync(folder.database);
    expect(database.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    database.close();
  });

  test("of a later version is rejected and not changed", async () => {
    folder.open().close();
    const path = folder.database;
    const later = new DatabaseSync(path);
    later.exec("PRAGMA user_version = 99");
    later.close();
    const before = readFileSync(path);
    expect(openSqliteStore(folder.path)).toMatchObject({ ok: false, error: { kind: "unsupported" } });
    const store = openSqliteStore(folder.path);
    expect(store.ok ? "" : store.error.message).toContain(`${path} has schema version 99`);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test.each([
    ["is text", (path: string) => writeFileSync(path, "This is no database. ".repeat(100))],
    ["lost its end", (path: string) => truncateSync(path, 4_096)],
    ["has noise for its second page", (path: string) => overwrite(path, 4_096, Buffer.alloc(4_096, 0xa5))],
  ])("that %s is rejected with its name and what to do, and the folder is released", async (_, damage) => {
    const path = folder.database;
    const store = folder.open();
    for (let call = 0; call < 10; call++) await store.calls.add("2026-11-01", 1);
    await store.close();
    damage(path);
    const refused = openSqliteStore(folder.path);
    expect(refused).toMatchObject({ ok: false, error: { kind: "damaged" } });
    expect(refused.ok ? "" : refused.error.message).toContain(`${path} is damaged`);
    expect(refused.ok ? "" : refused.error.message).toContain("move it away together with its -wal and -shm files");
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
    folder.open().close();
    expect(existsSync(path)).toBe(true);
  });

  test("of another program with the same version is rejected as damaged, and the folder is released", async () => {
    const path = folder.database;
    const externalUsage = new DatabaseSync(path);
    externalUsage.exec(`CREATE TABLE theirs (a); PRAGMA user_version = ${VERSIONS.last}`);
    externalUsage.close();
    expect(openSqliteStore(folder.path)).toMatchObject({ ok: false, error: { kind: "damaged" } });
    expect(openSqliteStore(folder.path)).toMatchObject({ ok: false, error: { kind: "damaged" } });
  });
});

function overwrite(path: string, offset: number, bytes: Uint8Array) {
  const content = readFileSync(path);
  content.set(bytes, offset);
  writeFileSync(path, content);
}
