import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { QUERY_ROWS_MAX } from "../../src/journal/row-rules.ts";
import { createJournal } from "../../src/journal/sqlite/journal.ts";
import { migrate } from "../../src/journal/sqlite/migrations.ts";
import { createMemoryStateStore, openSqliteStore } from "../../src/journal/sqlite/store.ts";
import type { Journal } from "../../src/model/remediation/journal.ts";
import {
  actionOf,
  anyChange,
  anyInstant,
  anyQuery,
  closedEpisodeOf,
  decisionOf,
  episodeOf,
  timerOf,
} from "./arbitrary-changes.ts";
import { createInMemoryJournal, inOrder } from "./in-memory-journal.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "journal-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function opened() {
  const store = openSqliteStore(folder);
  if (!store.ok) throw new Error(store.error.message);
  return store.value;
}

/** A row that SQLite refuses: the time has no value. */
const impossible = { kind: "decision", row: decisionOf(Number.NaN) } as const;

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

describe("a journal returns exactly what an in-memory journal does", () => {
  const commits = fc.array(fc.record({ changes: fc.array(anyChange, { maxLength: 12 }), isRefused: fc.boolean() }), {
    maxLength: 6,
  });
  const looks = fc.record({ since: anyInstant, queries: fc.array(anyQuery, { minLength: 1, maxLength: 5 }) });

  test("after arbitrary commits, with failed ones leaving no trace", async () => {
    await fc.assert(
      fc.asyncProperty(commits, looks, async (commits, { since, queries }) => {
        const { journal, close } = createMemoryStateStore();
        const plain = createInMemoryJournal();
        for (const { changes, isRefused } of commits) {
          if (isRefused) await expect(journal.commit([...changes, impossible])).rejects.toThrow();
          else await journal.commit(changes);
          if (!isRefused) plain.commit(changes);
        }
        expect(inOrder(await journal.load(since))).toEqual(inOrder(plain.load(since)));
        for (const query of queries) {
          expect(await journal.decisions(query)).toEqual(plain.decisions(query));
          expect(await journal.actions(query)).toEqual(plain.actions(query));
          expect(await journal.episodes(query)).toEqual(plain.episodes(query));
        }
        close();
      }),
      { numRuns: 300 },
    );
  });

  test("after it was closed and opened again", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyChange, { maxLength: 30 }), async (changes) => {
        const plain = createInMemoryJournal();
        const first = opened();
        await first.journal.commit(changes);
        await first.close();
        plain.commit(changes);
        const second = opened();
        expect(inOrder(await second.journal.load(0))).toEqual(inOrder(plain.load(0)));
        expect(await second.journal.decisions({ limit: 99 })).toEqual(plain.decisions({ limit: 99 }));
        await second.close();
        for (const suffix of ["", "-wal", "-shm"]) rmSync(join(folder, `proxywarden.db${suffix}`), { force: true });
      }),
      { numRuns: 25 },
    );
  });
});

describe("loading a journal", () => {
  test("returns open episodes of any age with all their actions", async () => {
    const { journal } = createMemoryStateStore();
    await journal.commit([
      { kind: "episode", row: episodeOf(1) },
      { kind: "action", row: actionOf(2, "ep-1") },
      { kind: "episode", row: closedEpisodeOf(3, 50) },
      { kind: "action", row: actionOf(4, "ep-3") },
      { kind: "action", row: actionOf(5, "ep-3", { state: "awaiting", endedAt: null }) },
    ]);
    const { episodes, actions } = await journal.load(100);
    expect(ids(episodes)).toEqual(["ep-1"]);
    expect(ids(actions)).toEqual(["act-2", "act-5"]);
    expect(ids((await journal.load(50)).episodes)).toEqual(["ep-1", "ep-3"]);
  });

  test("returns only the facts of the journal", async () => {
    const { journal, facts } = createMemoryStateStore();
    facts.write("month.used_before", "7");
    facts.write("wardens", "many");
    await journal.commit([{ kind: "fact", key: "warden.paused", value: "by hand" }]);
    expect((await journal.load(0)).facts).toEqual(new Map([["warden.paused", "by hand"]]));
    expect(facts.read("warden.paused")).toBe("by hand");
    await journal.commit([{ kind: "fact", key: "warden.paused", value: null }]);
    expect(facts.read("warden.paused")).toBeNull();
    expect(facts.read("wardens")).toBe("many");
  });

  test("returns 0 as the last number of an empty journal", async () => {
    expect((await createMemoryStateStore().journal.load(0)).lastNumber).toBe(0);
  });
});

describe("a commit", () => {
  test("fails as a whole for an invalid fact key or an id without a number", async () => {
    const { journal } = createMemoryStateStore();
    const timer = { kind: "timer", row: timerOf("node_1") } as const;
    await expect(journal.commit([timer, { kind: "fact", key: "breaker", value: "open" }])).rejects.toThrow(
      "begin with warden.",
    );
    const nameless = { ...episodeOf(1), id: "ep-" };
    await expect(journal.commit([timer, { kind: "episode", row: nameless }])).rejects.toThrow(
      "is not the id of an episode",
    );
    expect((await journal.load(0)).timers).toEqual([]);
  });

  test("never overwrites another row with the same number", async () => {
    const { journal } = createMemoryStateStore();
    await journal.commit([{ kind: "action", row: actionOf(1, "ep-1") }]);
    await expect(journal.commit([{ kind: "action", row: { ...actionOf(1, "ep-1"), id: "ep-1" } }])).rejects.toThrow(
      "UNIQUE",
    );
    expect(ids((await journal.load(0)).actions)).toEqual(["act-1"]);
  });

  test("of 20,000 timers takes less than a second on disk", async () => {
    const store = opened();
    const changes = (trueMs: number) =>
      Array.from({ length: 20_000 }, (_, index) => ({ kind: "timer", row: timerOf(`node_${index}`, trueMs) }) as const);
    await store.journal.commit(changes(1));
    const before = performance.now();
    await store.journal.commit(changes(2));
    expect(performance.now() - before).toBeLessThan(1_000);
    expect((await store.journal.load(0)).timers.filter(({ trueMs }) => trueMs === 2)).toHaveLength(20_000);
    await store.close();
  });
});

describe("a query", () => {
  test("returns the newest rows first, even if the clock was set back", async () => {
    const { journal } = createMemoryStateStore();
    const at = [10, 30, 20, 30];
    await journal.commit(at.map((each, step) => ({ kind: "decision", row: decisionOf(each, { step }) })));
    expect((await journal.decisions({ limit: 9 })).map(({ at, step }) => [at, step])).toEqual([
      [30, 3],
      [30, 1],
      [20, 2],
      [10, 0],
    ]);
    expect((await journal.decisions({ limit: 1, until: 29 })).map(({ step }) => step)).toEqual([2]);
  });

  test("is limited, whatever limit is requested", async () => {
    const { journal } = createMemoryStateStore();
    const changes = Array.from(
      { length: QUERY_ROWS_MAX + 1 },
      (_, at) => ({ kind: "decision", row: decisionOf(at) }) as const,
    );
    await journal.commit(changes);
    expect(await journal.decisions({ limit: 1e9 })).toHaveLength(QUERY_ROWS_MAX);
    expect(await journal.decisions({ limit: -1 })).toEqual([]);
  });
});

describe("every statement of the journal", () => {
  /** A database that takes down what is prepared on it. */
  function recording(database: DatabaseSync): { database: DatabaseSync; statements: string[] } {
    const statements: string[] = [];
    const prepare = (sql: string) => {
      statements.push(sql);
      return database.prepare(sql);
    };
    const recorder = { prepare, exec: (sql: string) => database.exec(sql), isTransaction: false };
    return { database: recorder as unknown as DatabaseSync, statements };
  }

  /** A value for each placeholder. */
  const nulls = (sql: string) => Array<null>(sql.split("?").length - 1).fill(null);

  async function askEverything(journal: Journal): Promise<void> {
    await journal.load(0);
    for (const asked of [{}, { until: 1 }, { policy: "p" }, { policy: "p", until: 1 }]) {
      for (const query of [asked, { ...asked, node: "n" }]) {
        for (const rows of [journal.decisions, journal.actions, journal.episodes]) await rows({ ...query, limit: 1 });
      }
    }
  }

  test("uses an index, and sorts only rows that it returns", async () => {
    const database = new DatabaseSync(":memory:");
    migrate(database);
    const { database: recorder, statements } = recording(database);
    await askEverything(createJournal(recorder));
    const slow = statements.flatMap((sql) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...nulls(sql))
        .map(({ detail }) => String(detail))
        .filter((step) => /^SCAN (?!CONSTANT)|TEMP B-TREE/.test(step))
        .map((step) => `${step}: ${sql.replaceAll(/\s+/g, " ")}`.slice(0, 76)),
    );
    expect(statements.length).toBeGreaterThan(30);
    // A policy may have as many rows as there are, a node has few.
    const ofNode = statements.filter((sql) => /^SELECT body .*node = \?.*policy = \?/.test(sql));
    const plans = ofNode.map((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).get(...nulls(sql))?.detail);
    expect(plans).toHaveLength(6);
    for (const plan of plans) expect(plan).toContain("_by_node");
    expect(slow).toEqual(
      [
        // What is loaded whole is read whole.
        `SCAN timers: SELECT policy, node, state, true_ms AS "trueMs", clear_ms AS "c`,
        "USE TEMP B-TREE FOR ORDER BY: SELECT body FROM episodes WHERE closed_at IS N",
        "USE TEMP B-TREE FOR ORDER BY: SELECT body FROM actions WHERE over_at IS NULL",
        "SCAN holds: SELECT body FROM holds",
        // The newest of all are at the end of an index.
        "SCAN decisions USING INDEX decisions_by_time: SELECT body FROM decisions ORDE",
        "SCAN actions USING INDEX actions_by_time: SELECT body FROM actions ORDER BY c",
        "SCAN episodes USING INDEX episodes_by_time: SELECT body FROM episodes ORDER B",
      ].map((line) => line.slice(0, 76)),
    );
  });
});
