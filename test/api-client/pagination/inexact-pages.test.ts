import { describe, expect, test } from "vitest";
import { createListBehavior } from "../../../src/api-client/pagination/list-behavior.ts";
import { walkList } from "../../../src/api-client/pagination/list-walk.ts";
import { ok } from "../../../src/base/result.ts";
import { addTo, walkOf } from "./page-list.ts";

describe("a difference between the total and the records", () => {
  test("is accepted after three equal walks in a row, and costs no extra page from then on", async () => {
    const { walk, asked } = walkOf({ total: 181, missing: 1, zeroIsOne: true });
    for (let round = 0; round < 2; round++) {
      expect(await walk()).toMatchObject({ value: { isExact: false, difference: 0 } });
    }
    expect(await walk()).toMatchObject({ value: { isExact: true, seen: 180 } });
    asked.length = 0;
    expect(await walk()).toMatchObject({ value: { isExact: true, difference: 1 } });
    expect(asked).toEqual([{ page: 1, limit: 1_000 }]);
  });

  test("is not accepted if it changes", async () => {
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

  test("is accepted as well if the total is too low, which hides no record", async () => {
    const everything = Array.from({ length: 350 }, (_, index) => index);
    const { walk, behavior } = walkOf({ total: 350, stated: 100, clamp: 100, records: () => everything });
    expect(await walk()).toMatchObject({ value: { end: "reached", isExact: false, seen: 350, total: 100 } });
    expect(behavior.pageSize).toBe(100);
  });
});

describe("a list that changes during a walk", () => {
  /** Creates a list, newest first, that changes after the given number of requested pages. */
  const shifting = (before: number[], after: number[], from: number) =>
    walkOf({
      total: after.length,
      stated: (asked) => (asked > from ? after : before).length,
      clamp: 100,
      records: (asked) => (asked > from ? after : before),
    });
  const descending = (from: number, length: number) => Array.from({ length }, (_, index) => from - index);

  test("is read again at the start for records that were added there", async () => {
    const { walk, seen } = shifting(descending(500, 500), descending(503, 503), 2);
    expect(await walk()).toMatchObject({ value: { isExact: true, total: 503 } });
    expect(seen.has(503)).toBe(true);
  });

  test("is read again where a record was removed and the next one moved", async () => {
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
        behavior: createListBehavior(100),
        inFlight: () => 3,
        async read({ page }) {
          pages++;
          return ok({ ...addTo(seen, records(page)), limit: 100, total: 1e12, at: 0 });
        },
      },
      new AbortController().signal,
    );
    return { pages, report };
  };
  const hundred = Array.from({ length: 100 }, (_, index) => index);

  test("causes no walk of millions of pages", async () => {
    const { pages, report } = await countPages((page) => [page]);
    expect(report).toMatchObject({ value: { end: "cut", isExact: false } });
    expect(pages).toBeLessThanOrEqual(20_001);
  });

  test("ends the walk at the first empty page", async () => {
    const { pages } = await countPages((page) => (page === 1 ? hundred : []));
    expect(pages).toBeLessThanOrEqual(5);
  });

  test("ends the walk after a few repeated pages", async () => {
    const { pages } = await countPages(() => hundred);
    expect(pages).toBeLessThanOrEqual(7);
  });
});

describe("a service that counts pages from 0 and rejects those after the end", () => {
  const rejectsPagesPast = (total: number) => {
    const pages = Math.ceil(total / 50);
    return walkOf({ total, clamp: 50, first: 0, fails: (page) => (page >= pages ? "not_found" : null) });
  };

  test.each([30, 180])("all %i records are read", async (total) => {
    const { walk, behavior } = rejectsPagesPast(total);
    await walk();
    expect(await walk()).toMatchObject({ ok: true, value: { end: "reached", seen: total, error: null } });
    expect(behavior.first).toBe(0);
  });
});

describe("pages in the middle of a list", () => {
  const everything = Array.from({ length: 500 }, (_, index) => index);

  test("do not end the walk if they are empty", async () => {
    const list = walkOf({ total: 500, clamp: 50, empty: (page) => page === 4, records: () => everything });
    expect(await list.walk()).toMatchObject({ value: { seen: 450, total: 500 } });
  });

  test("lead to further pages if they are shorter than others", async () => {
    const list = walkOf({ total: 500, clamp: 50, records: () => everything, shorter: 10 });
    expect(await list.walk()).toMatchObject({ value: { isExact: true, seen: 500 } });
  });
});

test("a list is complete again once the service no longer repeats its first page", async () => {
  let isIgnored = true;
  const list = walkOf({ total: 500, clamp: 100, ignoresPage: () => isIgnored });
  for (let round = 0; round < 5; round++) await list.walk();
  expect(list.behavior.ignoresPage).toBe(true);
  isIgnored = false;
  expect(await list.walk()).toMatchObject({ value: { seen: 500 } });
});
