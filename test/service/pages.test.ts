import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fail, ok } from "../../src/base/result.ts";
import type { PageQuery } from "../../src/service/endpoints.ts";
import type { ServiceError } from "../../src/service/errors.ts";
import { PAGE_LIMIT_FALLBACK, type PageHabits, walkPages } from "../../src/service/pages.ts";

interface List {
  readonly total: number;
  readonly clamp?: number;
  readonly echo?: "effective" | "requested";
  readonly reject?: number;
  readonly first?: 0 | 1;
  readonly share?: number;
  readonly fails?: (page: number) => ServiceError["kind"] | null;
  /** Records that the list holds when a page is asked for. */
  readonly records?: (asked: number) => number[];
}

function walkOf(list: List, limit = 1_000) {
  const asked: PageQuery[] = [];
  const seen = new Set<unknown>();
  const habits: PageHabits = { limit, size: null, first: 1, firstKnown: false };
  const walk = () =>
    walkPages(
      {
        habits,
        share: list.share ?? 1,
        async fetch(query) {
          asked.push(query);
          const kind = list.fails?.(query.page) ?? (query.limit > (list.reject ?? Infinity) ? "client_error" : null);
          if (kind !== null) return fail({ kind, message: "as the test says" });
          const size = Math.min(query.limit, list.clamp ?? Infinity);
          const records = list.records?.(asked.length) ?? Array.from({ length: list.total }, (_, index) => index);
          const begin = (query.page - (list.first ?? 1)) * size;
          const page = begin < 0 ? [] : records.slice(begin, begin + size);
          const echo = list.echo === "requested" ? query.limit : size;
          return ok({ page: { records: page, limit: echo, total: records.length }, at: 0 });
        },
        fold(records) {
          const before = seen.size;
          for (const record of records) seen.add(record);
          return seen.size - before;
        },
      },
      new AbortController().signal,
    );
  return { walk, asked, seen, habits };
}

test("whatever the total, the clamp, the echo, the refusal and the first number: all is seen, and the walk knows it", async () => {
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
      expect(report).toMatchObject({ ok: true, value: { complete: true, total: list.total, error: null } });
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
    expect(await walk()).toMatchObject({ value: { pages: 3 } });
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

describe("a walk is incomplete", () => {
  test("when a page in the middle fails, and says the first error", async () => {
    const { walk } = walkOf({ total: 500, clamp: 100, fails: (page) => (page === 3 ? "server_error" : null) });
    const report = await walk();
    expect(report).toMatchObject({ ok: true, value: { complete: false, seen: 400, error: { kind: "server_error" } } });
  });

  test("when the list shows less than its total", async () => {
    const { walk } = walkOf({ total: 0, records: () => Object.assign([1, 2, 3], { length: 3 }) });
    expect(await walk()).toMatchObject({ value: { complete: true, total: 3 } });
    const short = walkOf(
      { total: 100, fails: () => null, records: (asked) => Array.from({ length: asked > 1 ? 90 : 100 }, (_, i) => i) },
      50,
    );
    expect(await short.walk()).toMatchObject({ value: { drifted: true } });
  });

  test("by less than its share it is complete all the same: sessions churn while they are walked", async () => {
    const missing = (gone: number) => (asked: number) =>
      Array.from({ length: 1_000 }, (_, index) => (asked > 1 && index >= 1_000 - gone ? 0 : index));
    const nearly = walkOf({ total: 1_000, share: 0.99, records: missing(10) }, 100);
    expect(await nearly.walk()).toMatchObject({ value: { complete: true, seen: 990, drifted: true } });
    const short = walkOf({ total: 1_000, share: 0.99, records: missing(11) }, 100);
    expect(await short.walk()).toMatchObject({ value: { complete: false, seen: 989 } });
  });
});

describe("a walk is given up", () => {
  test("at once after a 429: the refused cycle is abandoned", async () => {
    const { walk, asked } = walkOf({ total: 10_000, clamp: 100, fails: (page) => (page >= 3 ? "rate_limited" : null) });
    expect(await walk()).toMatchObject({ value: { complete: false, error: { kind: "rate_limited" } } });
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

test("a total of billions does not make a walk of millions of pages", async () => {
  let pages = 0;
  const report = await walkPages(
    {
      habits: { limit: 100, size: null, first: 1, firstKnown: true },
      share: 1,
      async fetch() {
        pages++;
        return ok({ page: { records: [pages], limit: 100, total: 1e12 }, at: 0 });
      },
      fold: (records) => records.length,
    },
    new AbortController().signal,
  );
  expect(report).toMatchObject({ value: { complete: false } });
  expect(pages).toBe(50_000);
});
