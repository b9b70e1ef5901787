import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { DECISIONS_MAX, PRUNE_ROWS_MAX } from "../../src/journal/row-changes.ts";
import { createJournal } from "../../src/journal/sqlite/journal.ts";
import { migrate } from "../../src/journal/sqlite/migrations.ts";
import type { Journal } from "../../src/model/remediation/journal.ts";
import {
  actionOf,
  anyChange,
  anyInstant,
  closedEpisodeOf,
  decisionOf,
  episodeOf,
  holdOf,
  timerOf,
} from "./arbitrary-changes.ts";
import { isFinished } from "./in-memory-journal.ts";
import { removeCluster, STORE_KINDS } from "./state-stores.ts";

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

const remainingRows = async (journal: Journal) => {
  const { episodes, actions, holds } = await journal.load(0);
  return { episodes: ids(episodes), actions: ids(actions), holds: holds.map(({ node }) => node) };
};

afterAll(removeCluster);

describe.each(STORE_KINDS)("$name: pruning", ({ runs, open }) => {
  test("deletes what ended before a time, and nothing that ended at that time or later", async () => {
    const { journal } = await open();
    await journal.commit([
      { kind: "episode", row: closedEpisodeOf(1, 99) },
      { kind: "action", row: actionOf(2, "ep-1", { endedAt: 99 }) },
      { kind: "episode", row: closedEpisodeOf(3, 100) },
      { kind: "action", row: actionOf(4, "ep-3", { endedAt: 98 }) },
      { kind: "episode", row: closedEpisodeOf(5, 101) },
      { kind: "action", row: actionOf(6, "ep-1", { endedAt: 99 }) },
      { kind: "action", row: actionOf(7, "ep-gone", { endedAt: 100 }) },
      { kind: "action", row: actionOf(8, "ep-5", { endedAt: 101 }) },
      { kind: "decision", row: decisionOf(99) },
      { kind: "decision", row: decisionOf(100) },
      { kind: "hold", row: holdOf("node_1", { kind: "vetoed", until: 99 }) },
      { kind: "hold", row: holdOf("node_2", { kind: "vetoed", until: 100 }) },
      { kind: "hold", row: holdOf("node_3") },
      { kind: "timer", row: timerOf("node_1") },
      { kind: "fact", key: "remediation.breaker", value: "open" },
    ]);
    await journal.prune(100);
    // act-4 is over, and is what ep-3 did.
    expect(await remainingRows(journal)).toEqual({
      episodes: ["ep-3", "ep-5"],
      actions: ["act-4", "act-7", "act-8"],
      holds: ["node_2", "node_3"],
    });
    expect((await journal.decisions({ limit: 9 })).map(({ at }) => at)).toEqual([100]);
    expect((await journal.load(0)).timers).toHaveLength(1);
    expect((await journal.load(0)).facts.get("remediation.breaker")).toBe("open");
  });

  test("never deletes open episodes and their actions, or unfinished actions and their episodes", async () => {
    const { journal } = await open();
    await journal.commit([
      { kind: "episode", row: episodeOf(1, { state: "quarantined" }) },
      { kind: "action", row: actionOf(2, "ep-1") },
      { kind: "episode", row: closedEpisodeOf(3, 5) },
      { kind: "action", row: actionOf(4, "ep-3", { state: "sent", endedAt: null, outcome: null }) },
      { kind: "episode", row: closedEpisodeOf(5, 5) },
      { kind: "action", row: actionOf(6, "ep-5", { state: "lapsed", endedAt: null }) },
      { kind: "episode", row: closedEpisodeOf(7, 5) },
      { kind: "action", row: actionOf(8, "ep-7") },
    ]);
    await journal.prune(1_000);
    expect(await remainingRows(journal)).toMatchObject({
      episodes: ["ep-1", "ep-3", "ep-7"],
      actions: ["act-2", "act-4", "act-8"],
    });
  });

  test("keeps the rows with the highest numbers, so that no number is used twice", async () => {
    const { journal } = await open();
    await journal.commit([
      { kind: "episode", row: closedEpisodeOf(7, 1) },
      { kind: "action", row: actionOf(8, "ep-6") },
      { kind: "action", row: actionOf(9, "ep-6") },
    ]);
    await journal.prune(1_000);
    expect((await journal.load(0)).lastNumber).toBe(9);
    expect(await remainingRows(journal)).toMatchObject({ episodes: ["ep-7"], actions: ["act-9"] });
  });

  test("keeps the last decision about an open episode", async () => {
    const { journal } = await open();
    await journal.commit([
      { kind: "episode", row: episodeOf(1) },
      { kind: "episode", row: closedEpisodeOf(2, 5) },
      { kind: "decision", row: decisionOf(1, { episode: "ep-1", step: 1 }) },
      { kind: "decision", row: decisionOf(2, { episode: "ep-1", step: 2 }) },
      { kind: "decision", row: decisionOf(3, { episode: "ep-2", step: 3 }) },
    ]);
    await journal.prune(1_000);
    expect((await journal.decisions({ limit: 9 })).map(({ step }) => step)).toEqual([2]);
  });

  test("deletes a limited number of rows per call, oldest first, and eventually all", async () => {
    const { journal } = await open();
    await journal.commit(
      Array.from({ length: 2 * PRUNE_ROWS_MAX }, (_, at) => ({ kind: "decision", row: decisionOf(at) }) as const),
    );
    await journal.prune(1e9);
    expect(await journal.decisions({ limit: 1, until: PRUNE_ROWS_MAX - 1 })).toEqual([]);
    expect(await journal.decisions({ limit: 1, until: PRUNE_ROWS_MAX })).toHaveLength(1);
    await journal.prune(1e9);
    expect(await journal.decisions({ limit: 1 })).toEqual([]);
  });

  test("deletes exactly the rows that are no longer needed from any journal", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyChange, { minLength: 10, maxLength: 60 }), anyInstant, async (changes, before) => {
        const { journal, close } = await open();
        await journal.commit(changes);
        const was = await journal.load(0);
        await journal.prune(before);
        await journal.prune(before);
        const is = await journal.load(0);

        expect(is).toMatchObject({ timers: was.timers, facts: was.facts, lastNumber: was.lastNumber });
        const openIds = ids(was.episodes.filter(({ closedAt }) => closedAt === null));
        expect(ids(is.episodes)).toEqual(expect.arrayContaining(openIds));
        const gone = was.episodes.filter(({ id }) => !ids(is.episodes).includes(id));
        for (const { id, closedAt } of gone) {
          expect(closedAt).toBeLessThan(before);
          expect(is.actions.filter(({ episode }) => episode === id)).toEqual([]);
        }
        const remainingIds = is.episodes
          .filter(({ closedAt }) => closedAt === null || closedAt >= before)
          .map(({ id }) => id);
        const mayGo = was.actions.filter(
          (action) =>
            isFinished(action) &&
            (action.endedAt ?? action.createdAt) < before &&
            !remainingIds.includes(action.episode),
        );
        const goneActions = was.actions.filter(({ id }) => !ids(is.actions).includes(id));
        expect(ids(mayGo)).toEqual(expect.arrayContaining(ids(goneActions)));
        expect(mayGo.length - goneActions.length).toBeLessThanOrEqual(1);
        await close();
      }),
      { numRuns: runs },
    );
  });
});

test("a commit deletes the oldest decisions beyond the maximum", async () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const journal = createJournal(database);
  const commit = async (...at: number[]) =>
    await journal.commit(at.map((time) => ({ kind: "decision", row: decisionOf(time) }) as const));
  await commit(1, 2, 3, 4, 5);
  // As if all between had been written.
  database.exec(`UPDATE sqlite_sequence SET seq = ${DECISIONS_MAX} + 3 WHERE name = 'decisions'`);
  await commit(6);
  expect((await journal.decisions({ limit: 9 })).map(({ at }) => at)).toEqual([6, 5, 4, 3]);
  await commit(7);
  expect((await journal.decisions({ limit: 9 })).map(({ at }) => at)).toEqual([7, 6, 5]);
  await commit(8, 9);
  expect((await journal.decisions({ limit: 9 })).map(({ at }) => at)).toEqual([9, 8, 7, 6]);
});
