import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fail, ok } from "../../src/base/result.ts";
import type { PageQuery } from "../../src/service/endpoints.ts";
import type { ServiceError } from "../../src/service/errors.ts";
import { newPageHabits, PAGE_LIMIT_FALLBACK, walkPages } from "../../src/service/pages.ts";

interface List {
  readonly total: number;
  readonly clamp?: number;
  readonly echo?: "effective" | "requested";
  readonly reject?: number;
  readonly first?: 0 | 1;
  /** Whether page 0 shows what page 1 shows. */
  readonly zeroIsOne?: boolean;
  /** Records that the total counts and no page shows. */
  readonly missing?: number;
  /** What the list states as its total, where that is not the truth. */
  readonly stated?: number | ((asked: number) => number);
  /** Records of the first page answered, where it is shorter than the others. */
  readonly shortFirst?: number;
  readonly fails?: (page: number) => ServiceError["kind"] | null;
  /** Records that the list holds when a page is asked for. */
  readonly records?: (asked: number) => number[];
}

const statedBy = ({ stated, total }: List, asked: number): number =>
  typeof stated === "function" ? stated(asked) : (stated ?? total);

function walkOf(list: List, limit = 1_000) {
  const asked: PageQuery[] = [];
  const seen = new Set<unknown>();
  const habits = newPageHabits(limit);
  const walk = () => {
    seen.clear();
    return walkPages(
      {
        habits,
        inFlight: () => 3,
        async fetch(query) {
          asked.push(query);
          const kind = list.fails?.(query.page) ?? (query.limit > (list.reject ?? Infinity) ? "client_error" : null);
          if (kind !== null) return fail({ kind, message: "as the test says" });
          const size = Math.min(query.limit, list.clamp ?? Infinity);
          const records = list.records?.(asked.length) ?? Array.from({ length: list.total }, (_, index) => index);
          const number = list.zeroIsOne ? Math.max(1, query.page) : query.page;
          const begin = (number - (list.first ?? 1)) * size;
          const end = Math.min(
            begin + (asked.length === 1 ? (list.shortFirst ?? size) : size),
            list.total - (list.missing ?? 0),
          );
          const page = begin < 0 ? [] : records.slice(begin, end);
          const echo = list.echo === "requested" ? query.limit : size;
          return ok({ page: { records: page, limit: echo, total: statedBy(list, asked.length) }, at: 0 });
        },
        fold(records) {
          const before = seen.size;
          for (const record of records) seen.add(record);
          return seen.size - before;
        },
      },
      new AbortController().signal,
    );
  };
  return { walk, asked, seen, habits };
}

test("whatever the total, the clamp, the echo, the refusal and the first number: every record is seen and accounted for", async () => {
  const lists = fc.record({
    total: fc.nat(2_500),
    clamp: fc.integer({ min: 1, max: 1_500 }),
    echo: fc.constantFrom("effective", "requested" as const),
    reject: fc.constantFrom(100, 500, 5_000),
    first: fc.constantFrom(0, 1 as const),
  });
  await fc.assert(
    fc.asyncProperty(lists, async (list) => {
      const { walk, seen, habits } = walkOf(list);
      const report = await walk();
      expect(report).toMatchObject({
        ok: true,
        value: { end: "reached", isExact: true, total: list.total, error: null },
      });
      expect(seen.size).toBe(list.total);
      if (list.total > 1) expect(habits.first).toBe(list.first);
    }),
    { numRuns: 200 },
  );
});

describe("what is learned is kept", () => {
  test("a service that clamps to 100 is asked for as many pages as it really takes, the second time without a try", async () => {
    const { walk, asked } = walkOf({ total: 250, clamp: 100, first: 0 });
    await walk();
    asked.length = 0;
    await walk();
    expect(asked.map(({ page }) => page)).toEqual([0, 1, 2]);
  });

  test("a refused limit is asked for once, then never again", async () => {
    const { walk, asked, habits } = walkOf({ total: 150, reject: 100 });
    await walk();
    expect(habits.limit).toBe(PAGE_LIMIT_FALLBACK);
    asked.length = 0;
    await walk();
    expect(asked.every(({ limit }) => limit === PAGE_LIMIT_FALLBACK)).toBe(true);
  });
});

describe("what was learned wrongly does not stay, and costs little", () => {
  test("an empty list proves nothing of where its pages begin", async () => {
    let total = 0;
    const list = {
      first: 0,
      clamp: 100,
      get total() {
        return total;
      },
    } as const;
    const { walk, habits } = walkOf(list);
    await walk();
    total = 250;
    expect(await walk()).toMatchObject({ value: { isExact: true, seen: 250 } });
    expect(habits.first).toBe(0);
  });

  test("a service that takes page 0 for page 1 is not taken for one that counts from 0", async () => {
    const { walk, habits } = walkOf({ total: 300, clamp: 100, zeroIsOne: true, missing: 20 });
    for (let round = 0; round < 5; round++) expect(await walk()).toMatchObject({ value: { seen: 280, total: 300 } });
    expect(habits.first).toBe(1);
  });

  test("one record on the first page makes no walk of a thousand pages", async () => {
    const { walk, asked } = walkOf({ total: 1_001, clamp: 1_000, first: 0 });
    expect(await walk()).toMatchObject({ value: { isExact: true } });
    expect(asked.length).toBeLessThanOrEqual(6);
  });

  test("a short first page makes no walk of pages as short", async () => {
    const { walk, asked } = walkOf({ total: 20_000, clamp: 1_000, shortFirst: 2 });
    await walk();
    expect(asked.length).toBeLessThanOrEqual(25);
  });

  test("a limit that was refused once in passing is asked for again later", async () => {
    let isRefused = true;
    const { walk, habits } = walkOf({
      total: 150,
      get reject() {
        return isRefused ? 100 : Number.POSITIVE_INFINITY;
      },
    });
    await walk();
    expect(habits.limit).toBe(100);
    isRefused = false;
    for (let round = 0; round < 100; round++) await walk();
    expect(habits.limit).toBe(1_000);
  });

  test("a refusal that the smaller page meets too changes nothing", async () => {
    const { walk, habits } = walkOf({ total: 150, fails: () => "client_error" });
    expect(await walk()).toMatchObject({ ok: false, error: { kind: "client_error" } });
    expect(habits.limit).toBe(1_000);
  });
});

describe("a walk is not exact", () => {
  test("when a page in the middle fails, and reports the first error", async () => {
    const { walk } = walkOf({ total: 500, clamp: 100, fails: (page) => (page === 3 ? "server_error" : null) });
    const report = await walk();
    expect(report).toMatchObject({ ok: true, value: { isExact: false, seen: 400, error: { kind: "server_error" } } });
  });

  test("when the list shows less than its total", async () => {
    const records = (asked: number) => Array.from({ length: asked > 1 ? 90 : 100 }, (_, index) => index);
    const { walk } = walkOf({ total: 100, records }, 50);
    expect(await walk()).toMatchObject({
      value: { end: "reached", isExact: false, seen: 90, total: 100, error: null },
    });
  });

  test("when the service refuses every page past some record: what came before is kept", async () => {
    const { walk, asked } = walkOf({
      total: 1_000,
      clamp: 100,
      fails: (page) => (page > 4 ? "client_error" : null),
    });
    expect(await walk()).toMatchObject({ value: { end: "refused", seen: 400, error: { kind: "client_error" } } });
    expect(asked.length).toBeLessThanOrEqual(8);
  });
});

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
    const { walk, habits } = walkOf({ total: 350, stated: 100, clamp: 100, records: () => everything });
    expect(await walk()).toMatchObject({ value: { end: "reached", isExact: false, seen: 350, total: 100 } });
    expect(habits.size).toBe(100);
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

describe("a walk is given up", () => {
  test("at once after a 429: the refused cycle is abandoned", async () => {
    const { walk, asked } = walkOf({ total: 10_000, clamp: 100, fails: (page) => (page >= 3 ? "rate_limited" : null) });
    expect(await walk()).toMatchObject({ value: { end: "cut", error: { kind: "rate_limited" } } });
    expect(asked.length).toBeLessThanOrEqual(6);
  });

  test("after three failed pages: no storm of retries over a broken list", async () => {
    const { walk, asked } = walkOf({ total: 10_000, clamp: 100, fails: (page) => (page > 1 ? "timeout" : null) });
    await walk();
    expect(asked.length).toBeLessThanOrEqual(6);
  });

  test("whole where the first page fails", async () => {
    const { walk } = walkOf({ total: 100, fails: () => "unreachable" });
    expect(await walk()).toMatchObject({ ok: false, error: { kind: "unreachable" } });
  });
});

describe("a total of billions", () => {
  const countPages = async (records: (page: number) => unknown[]) => {
    const seen = new Set<unknown>();
    let pages = 0;
    const report = await walkPages(
      {
        habits: newPageHabits(100),
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
