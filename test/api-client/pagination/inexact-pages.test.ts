import { describe, expect, test } from "vitest";
import { createListBehaviour } from "../../../src/api-client/pagination/list-walk.ts";
import { walkList } from "../../../src/api-client/pagination/pages.ts";
import { ok } from "../../../src/base/result.ts";
import { walkOf } from "./page-list.ts";

describe("a difference between the total and the records", () => {
  test("is accepted once three walks in a row agree on it, and costs no further page from then on", async () => {
    const { walk, asked } = walkOf({ total: 181, missing: 1, zeroIsOne: true });
    for (let round = 0; round < 2; round++) {
      expect(await walk()).toMatchObject({ value: { isExact: false, difference: 0 } });
    }
    expect(await walk()).toMatchObject({ value: { isExact: true, seen: 180 } });
    asked.length = 0;
    expect(await walk()).toMatchObject({ value: { isExact: true, difference: 1 } });
    expect(asked).toEqual([{ page: 1, limit: 1_000 }]);
  });

  test("that changes is not", async () => {
    let missing = 1;
    const list = {
      total: 181,
      get missing() {
        return missing;
      },
    };
    const { walk } = walkOf(list);
    for (let round = 0; round < 3; round++) await walk();
    missing = 3;
    expect(await walk()).toMatchObject({ value: { isExact: false, difference: 1 } });
  });

  test("in the other direction is found, too: a total that is too low hides no record", async () => {
    const everything = Array.from({ length: 350 }, (_, index) => index);
    const { walk, habits: behaviour } = walkOf({ total: 350, stated: 100, clamp: 100, records: () => everything });
    expect(await walk()).toMatchObject({ value: { end: "reached", isExact: false, seen: 350, total: 100 } });
    expect(behaviour.pageSize).toBe(100);
  });
});

describe("a list that shifts while it is walked", () => {
  /** A list, newest first, that changes after so many pages were asked for. */
  const shifting = (before: number[], after: number[], from: number) =>
    walkOf({
      total: after.length,
      stated: (asked) => (asked > from ? after : before).length,
      clamp: 100,
      records: (asked) => (asked > from ? after : before),
    });
  const descending = (from: number, length: number) => Array.from({ length }, (_, index) => from - index);

  test("has its head read again for the records that joined there", async () => {
    const { walk, seen } = shifting(descending(500, 500), descending(503, 503), 2);
    expect(await walk()).toMatchObject({ value: { isExact: true, total: 503 } });
    expect(seen.has(503)).toBe(true);
  });

  test("has the place read again at which a record left and the next one slid past the reader", async () => {
    const before = descending(500, 500);
    const { walk, seen } = shifting(
      before,
      before.filter((record) => record !== 450),
      2,
    );
    await walk();
    expect(seen.size).toBe(500);
  });
});

describe("a total of billions", () => {
  const countPages = async (records: (page: number) => unknown[]) => {
    const seen = new Set<unknown>();
    let pages = 0;
    const report = await walkList(
      {
        behaviour: createListBehaviour(100),
        inFlight: () => 3,
        async fetch({ page }) {
          pages++;
          return ok({ page: { records: records(page), limit: 100, total: 1e12 }, at: 0 });
        },
        fold(page) {
          const before = seen.size;
          for (const record of page) seen.add(record);
          return seen.size - before;
        },
      },
      new AbortController().signal,
    );
    return { pages, report };
  };
  const hundred = Array.from({ length: 100 }, (_, index) => index);

  test("makes no walk of millions of pages", async () => {
    const { pages, report } = await countPages((page) => [page]);
    expect(report).toMatchObject({ value: { end: "cut", isExact: false } });
    expect(pages).toBeLessThanOrEqual(20_001);
  });

  test("ends the walk at the first empty page", async () => {
    const { pages } = await countPages((page) => (page === 1 ? hundred : []));
    expect(pages).toBeLessThanOrEqual(5);
  });

  test("ends the walk after a few pages that repeat the first", async () => {
    const { pages } = await countPages(() => hundred);
    expect(pages).toBeLessThanOrEqual(7);
  });
});

describe("a service that counts its pages from 0 and refuses those past the end", () => {
  const rejectsPagesPast = (total: number) => {
    const pages = Math.ceil(total / 50);
    return walkOf({ total, clamp: 50, first: 0, fails: (page) => (page >= pages ? "not_found" : null) });
  };

  test.each([30, 180])("has all %i records read", async (total) => {
    const { walk, habits: behaviour } = rejectsPagesPast(total);
    await walk();
    expect(await walk()).toMatchObject({ ok: true, value: { end: "reached", seen: total, error: null } });
    expect(behaviour.first).toBe(0);
  });
});

describe("pages in the middle of a list", () => {
  const everything = Array.from({ length: 500 }, (_, index) => index);

  test("that are empty do not end the walk", async () => {
    const list = walkOf({ total: 500, clamp: 50, empty: (page) => page === 4, records: () => everything });
    expect(await list.walk()).toMatchObject({ value: { seen: 450, total: 500 } });
  });

  test("that are shorter than others leave the rest to further pages", async () => {
    const list = walkOf({ total: 500, clamp: 50, records: () => everything, shorter: 10 });
    expect(await list.walk()).toMatchObject({ value: { isExact: true, seen: 500 } });
  });
});

test("a service that repeated its first page for a while is read whole as soon as it no longer does", async () => {
  let isIgnored = true;
  const list = walkOf({ total: 500, clamp: 100, ignoresPage: () => isIgnored });
  for (let round = 0; round < 5; round++) await list.walk();
  expect(list.habits.ignoresPage).toBe(true);
  isIgnored = false;
  expect(await list.walk()).toMatchObject({ value: { seen: 500 } });
});
