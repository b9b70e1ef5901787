import { describe, expect, test } from "vitest";
import { walkOf } from "./page-list.ts";

describe("the number of the first page", () => {
  test("an empty list does not prove the number of the first page", async () => {
    const list = { first: 0 as const, clamp: 100, total: 0 };
    const { walk, behavior } = walkOf(list);
    await walk();
    list.total = 250;
    expect(await walk()).toMatchObject({ value: { isExact: true, seen: 250 } });
    expect(behavior.first).toBe(0);
  });

  test.each([
    { total: 20, emptyTotal: 0 },
    { total: 100, emptyTotal: 0 },
    { total: 120, emptyTotal: 7 },
    { total: 200, emptyTotal: 7 },
  ])(
    "a list of $total records is read if pages count from 0 and empty ones state a total of $emptyTotal",
    async ({ total, emptyTotal }) => {
      const { walk, behavior } = walkOf({ total, clamp: 100, first: 0, emptyTotal });
      expect(await walk()).toMatchObject({ value: { isExact: true, seen: total, total } });
      expect(behavior.first).toBe(0);
    },
  );

  test("a service that counts from 0 is detected after it ignored the page number for a while", async () => {
    let isIgnored = true;
    const { walk, seen, behavior } = walkOf({ total: 120, clamp: 50, first: 0, ignoresPage: () => isIgnored });
    for (let walks = 0; walks < 5; walks++) await walk();
    expect(behavior.firstKnown).toBe(false);
    isIgnored = false;
    await walk();
    expect(seen.size).toBe(120);
    expect(behavior.first).toBe(0);
  });

  test.each([59, 80, 120])(
    "a list of %i records is read with every walk if pages count from 0 and those after the last one repeat it",
    async (total) => {
      const { walk, seen, behavior } = walkOf({ total, clamp: 50, first: 0, last: Math.ceil(total / 50) - 1 });
      for (let walks = 0; walks < 40; walks++) {
        await walk();
        expect(seen.size).toBe(total);
      }
      expect(behavior.first).toBe(0);
    },
  );

  test.each([15, 60, 99, 150, 1_000])(
    "a list of %i records is read with one page if pages count from 0 and those after the last one are rejected",
    async (total) => {
      for (const stated of [total, 10]) {
        const fails = (page: number, limit: number) => (page * limit >= total ? "client_error" : null);
        const { walk, seen, asked, behavior } = walkOf({ total, stated, first: 0, fails });
        await walk();
        expect([seen.size, behavior.first, behavior.firstKnown]).toEqual([total, 0, true]);
        await walk();
        asked.length = 0;
        await walk();
        expect(seen.size).toBe(total);
        if (stated === total) expect(asked).toEqual([{ page: 0, limit: 1_000 }]);
      }
    },
  );

  test.each([
    { total: 250, pageZeroCalls: [{ page: 0, limit: 100 }] },
    { total: 2_500, pageZeroCalls: [] },
  ])("a rejected page size of a list of $total records costs at most one call with page 0", async (list) => {
    const fails = (page: number) => (page === 0 ? "client_error" : null);
    const { walk, asked } = walkOf({ total: list.total, reject: 100, fails });
    for (let walks = 0; walks < 5; walks++) await walk();
    expect(asked.filter(({ page }) => page === 0)).toEqual(list.pageZeroCalls);
  });

  describe.each([250, 900, 5_000])("a list of %i records of which one page is rejected once", (total) => {
    test.each([
      { name: "pages count from 0", first: 0, zeroIsOne: false },
      { name: "page 0 is page 1", first: 1, zeroIsOne: true },
    ] as const)("is read completely with every walk if $name", async ({ first, zeroIsOne }) => {
      for (const countsPage of [false, true]) {
        const stated = () => Math.min(total, countsPage ? asked.at(-1)!.limit : total);
        const fails = () => (asked.length === 1 ? "client_error" : null);
        const { walk, seen, asked, behavior } = walkOf({ total, first, zeroIsOne, stated, fails });
        for (let walks = 0; walks < 5; walks++) {
          expect(await walk()).toMatchObject({ value: { end: "reached", seen: total } });
          expect(seen.size).toBe(total);
        }
        expect(behavior.first).toBe(first);
      }
    });
  });

  test.each([80, 120, 320, 450])(
    "a list that counts %i records and shows 20 fewer is read if pages count from 0 and those after the end are rejected",
    async (total) => {
      const fails = (page: number, limit: number) => (page * limit >= total - 20 ? "client_error" : null);
      const { walk, seen, behavior } = walkOf({ total, missing: 20, first: 0, fails });
      for (let walks = 0; walks < 5; walks++) {
        expect(await walk()).toMatchObject({ value: { end: "reached", seen: total - 20 } });
        expect(seen.size).toBe(total - 20);
      }
      expect(behavior.limit).toBe(1_000);
    },
  );

  test("a list that shrinks and states a total of 0 is read with every walk if pages count from 0", async () => {
    const list = {
      first: 0 as const,
      stated: 0,
      total: 42,
      fails: (page: number, limit: number): "client_error" | null =>
        page * limit >= list.total ? "client_error" : null,
    };
    const { walk, seen } = walkOf(list, 50);
    for (; list.total > 0; list.total -= 3) {
      expect(await walk()).toMatchObject({ value: { end: "reached" } });
      expect(seen.size).toBe(list.total);
    }
  });

  test.each([
    { kind: "not_found", emptyTotal: 0 },
    { kind: "client_error", emptyTotal: 0 },
    { kind: "not_found", emptyTotal: 250 },
  ] as const)("an empty page 0 with a total of $emptyTotal proves nothing if page 1 failed: $kind", async (empty) => {
    let isRejected = true;
    const fails = (page: number) => (isRejected && page === 1 ? empty.kind : null);
    const { walk, seen, asked, behavior } = walkOf({ total: 250, clamp: 100, emptyTotal: empty.emptyTotal, fails });
    await walk();
    isRejected = false;
    for (let walks = 0; walks < 3; walks++) {
      asked.length = 0;
      expect(await walk()).toMatchObject({ value: { end: "reached", seen: 250 } });
      expect(seen.size).toBe(250);
    }
    expect(asked.map(({ page }) => page)).toEqual([1, 2, 3]);
    expect(behavior.first).toBe(1);
  });

  test.each(["not_found", "client_error"] as const)(
    "an empty list costs two calls per walk if pages count from 0 and the others are rejected: %s",
    async (kind) => {
      let total = 0;
      const list = {
        first: 0,
        get total() {
          return total;
        },
        fails: (page: number) => (page > 0 ? kind : null),
      } as const;
      const { walk, seen, asked, behavior } = walkOf(list);
      await walk();
      asked.length = 0;
      expect(await walk()).toMatchObject({ value: { isExact: true, seen: 0, total: 0 } });
      expect(asked.map(({ page }) => page)).toEqual([1, 0]);
      total = 40;
      await walk();
      expect([seen.size, behavior.first, behavior.firstKnown]).toEqual([40, 0, true]);
    },
  );

  test("smaller pages are requested soon after an empty list has records that only they show", async () => {
    let total = 0;
    const list = {
      clamp: 100,
      get first(): 0 | 1 {
        return total === 0 ? 0 : 1;
      },
      get total() {
        return total;
      },
      fails: (page: number, limit: number) =>
        (total === 0 ? page > 0 : page === 0 || limit > 100) ? ("client_error" as const) : null,
    };
    const { walk, seen } = walkOf(list);
    await walk();
    total = 250;
    await walk();
    await walk();
    expect(seen.size).toBe(250);
  });

  test("a list is read again after the service began to count pages from 1, and leaves page 0 empty", async () => {
    let first: 0 | 1 = 0;
    const list = {
      total: 250,
      clamp: 100,
      emptyTotal: 0,
      get first() {
        return first;
      },
    };
    const { walk, seen, behavior } = walkOf(list);
    await walk();
    expect([seen.size, behavior.first]).toEqual([250, 0]);
    first = 1;
    await walk();
    await walk();
    expect(seen.size).toBe(250);
  });

  test("page 0 is found although the total counts only the records of a page, or none", async () => {
    for (const stated of [50, 0]) {
      const { walk, seen, behavior } = walkOf({ total: 500, clamp: 50, first: 0, stated });
      await walk();
      expect([seen.size, behavior.first]).toEqual([500, 0]);
    }
  });

  test("page 0 is found after it was rejected for a while", async () => {
    let isRejected = true;
    const fails = (page: number) => (isRejected && page === 0 ? "client_error" : null);
    const { walk, seen, asked } = walkOf({ total: 120, clamp: 50, first: 0, fails });
    for (let walks = 0; walks < 10; walks++) await walk();
    expect(seen.size).toBe(70);
    isRejected = false;
    asked.length = 0;
    for (let walks = 0; walks < 30; walks++) await walk();
    expect(seen.size).toBe(120);
  });

  test("page 0 is requested rarely if it does not exist and the total is too high", async () => {
    const fails = (page: number) => (page === 0 ? "client_error" : null);
    const { walk, asked } = walkOf({ total: 170, clamp: 50, missing: 60, fails });
    for (let walks = 0; walks < 10; walks++) await walk();
    asked.length = 0;
    for (let walks = 0; walks < 60; walks++) await walk();
    expect(asked.filter(({ page }) => page === 0).length).toBeLessThanOrEqual(2);
  });

  test("a service that treats page 0 as page 1 does not count from 0", async () => {
    const { walk, behavior } = walkOf({ total: 300, clamp: 100, zeroIsOne: true, missing: 20 });
    for (let round = 0; round < 5; round++) expect(await walk()).toMatchObject({ value: { seen: 280, total: 300 } });
    expect(behavior.first).toBe(1);
  });
});
