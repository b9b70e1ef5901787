import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { QUERY_ROWS_MAX } from "../../src/journal/row-queries.ts";
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
import { removeCluster, STORE_KINDS } from "./state-stores.ts";

afterAll(removeCluster);

/** A row that the database refuses: the time has no value. */
const impossible = { kind: "decision", row: decisionOf(Number.NaN) } as const;

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

describe.each(STORE_KINDS)("$name:", ({ runs, open, createDurable, stored }) => {
  describe("a journal returns exactly what an in-memory journal does", () => {
    const commits = fc.array(fc.record({ changes: fc.array(anyChange, { maxLength: 12 }), isRefused: fc.boolean() }), {
      maxLength: 6,
    });
    const reads = fc.record({ since: anyInstant, queries: fc.array(anyQuery, { minLength: 1, maxLength: 5 }) });

    test("after arbitrary commits, with failed ones leaving no trace", async () => {
      await fc.assert(
        fc.asyncProperty(commits, reads, async (commits, { since, queries }) => {
          const { journal, close } = await open();
          const expected = createInMemoryJournal();
          for (const { changes, isRefused } of commits) {
            if (isRefused) await expect(journal.commit([...changes, impossible])).rejects.toThrow();
            else await journal.commit(changes);
            if (!isRefused) expected.commit(stored(changes));
          }
          expect(inOrder(await journal.load(since))).toEqual(inOrder(expected.load(since)));
          for (const query of queries) {
            expect(await journal.decisions(query)).toEqual(expected.decisions(stored(query)));
            expect(await journal.actions(query)).toEqual(expected.actions(stored(query)));
            expect(await journal.episodes(query)).toEqual(expected.episodes(stored(query)));
          }
          await close();
        }),
        { numRuns: runs },
      );
    });

    test("after it was closed and opened again", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(anyChange, { maxLength: 30 }), async (changes) => {
          const expected = createInMemoryJournal();
          const reopen = createDurable();
          const first = await reopen();
          await first.journal.commit(changes);
          await first.close();
          expected.commit(stored(changes));
          const second = await reopen();
          expect(inOrder(await second.journal.load(0))).toEqual(inOrder(expected.load(0)));
          expect(await second.journal.decisions({ limit: 99 })).toEqual(expected.decisions({ limit: 99 }));
          await second.close();
        }),
        { numRuns: Math.ceil(runs / 10) },
      );
    });
  });

  describe("loading a journal", () => {
    test("returns open episodes of any age with all their actions", async () => {
      const { journal } = await open();
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

    test("returns facts until they are deleted", async () => {
      const { journal } = await open();
      await journal.commit([
        { kind: "fact", key: "month.used_before", value: "7" },
        { kind: "fact", key: "remediation.pause", value: "by hand" },
      ]);
      const both = { "month.used_before": "7", "remediation.pause": "by hand" };
      expect(Object.fromEntries((await journal.load(0)).facts)).toEqual(both);
      await journal.commit([{ kind: "fact", key: "remediation.pause", value: null }]);
      expect(Object.fromEntries(await journal.facts())).toEqual({ "month.used_before": "7" });
    });

    test("returns 0 as the last number of an empty journal", async () => {
      expect((await (await open()).journal.load(0)).lastNumber).toBe(0);
    });
  });

  describe("a commit", () => {
    test("fails as a whole for an id without a number", async () => {
      const { journal } = await open();
      const timer = { kind: "timer", row: timerOf("node_1") } as const;
      const nameless = { ...episodeOf(1), id: "ep-" };
      await expect(journal.commit([timer, { kind: "episode", row: nameless }])).rejects.toThrow(
        "is not the id of an episode",
      );
      expect((await journal.load(0)).timers).toEqual([]);
    });

    test("never overwrites another row with the same number", async () => {
      const { journal } = await open();
      await journal.commit([{ kind: "action", row: actionOf(1, "ep-1") }]);
      await expect(journal.commit([{ kind: "action", row: { ...actionOf(1, "ep-1"), id: "ep-1" } }])).rejects.toThrow(
        /unique/i,
      );
      expect(ids((await journal.load(0)).actions)).toEqual(["act-1"]);
    });

    test("may have 20,000 timers", async () => {
      const store = await createDurable()();
      const changes = (trueMs: number) =>
        Array.from(
          { length: 20_000 },
          (_, index) => ({ kind: "timer", row: timerOf(`node_${index}`, trueMs) }) as const,
        );
      await store.journal.commit(changes(1));
      await store.journal.commit(changes(2));
      expect((await store.journal.load(0)).timers.filter(({ trueMs }) => trueMs === 2)).toHaveLength(20_000);
      await store.close();
    });
  });

  describe("a query", () => {
    test("returns the newest rows first, even if the clock was set back", async () => {
      const { journal } = await open();
      const at = [10, 30, 20, 30];
      await journal.commit(at.map((time, step) => ({ kind: "decision", row: decisionOf(time, { step }) })));
      expect((await journal.decisions({ limit: 9 })).map(({ at, step }) => [at, step])).toEqual([
        [30, 3],
        [30, 1],
        [20, 2],
        [10, 0],
      ]);
      expect((await journal.decisions({ limit: 1, until: 29 })).map(({ step }) => step)).toEqual([2]);
    });

    test("is limited regardless of the requested limit", async () => {
      const { journal } = await open();
      const changes = Array.from(
        { length: QUERY_ROWS_MAX + 1 },
        (_, at) => ({ kind: "decision", row: decisionOf(at) }) as const,
      );
      await journal.commit(changes);
      expect(await journal.decisions({ limit: 1e9 })).toHaveLength(QUERY_ROWS_MAX);
      expect(await journal.decisions({ limit: -1 })).toEqual([]);
    });
  });
});
