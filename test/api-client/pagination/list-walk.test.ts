import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PAGE_LIMIT_FALLBACKS } from "../../../src/api-client/pagination/list-walk.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { walkOf } from "./page-list.ts";

test("every record is read regardless of the total, also of empty pages, maximum page size, stated limit, errors and first page number", async () => {
  const lists = fc.record({
    total: fc.nat(2_500),
    clamp: fc.integer({ min: 1, max: 1_500 }),
    echo: fc.constantFrom("effective", "requested" as const),
    reject: fc.constantFrom(100, 500, 5_000),
    first: fc.constantFrom(0, 1 as const),
    emptyTotal: fc.constantFrom(undefined, 0),
  });
  await fc.assert(
    fc.asyncProperty(lists, async (list) => {
      const { walk, seen, behavior } = walkOf(list);
      const report = await walk();
      expect(report).toMatchObject({
        ok: true,
        value: { end: "reached", isExact: true, total: list.total, error: null },
      });
      expect(seen.size).toBe(list.total);
      if (list.total > 1) expect(behavior.first).toBe(list.first);
    }),
    propertyRuns(200),
  );
});

describe("knowledge about a list is kept", () => {
  test("a service with a maximum page size of 100 gets no extra call in the second walk", async () => {
    const { walk, asked } = walkOf({ total: 250, clamp: 100, first: 0 });
    await walk();
    asked.length = 0;
    await walk();
    expect(asked.map(({ page }) => page)).toEqual([0, 1, 2]);
  });

  test.each(PAGE_LIMIT_FALLBACKS)("a limit above %i that is rejected is requested once", async (max) => {
    const { walk, asked, behavior } = walkOf({ total: 150, reject: max });
    await walk();
    expect(behavior.limit).toBe(max);
    asked.length = 0;
    await walk();
    expect(asked.every(({ limit }) => limit === max)).toBe(true);
  });
});

describe("large pages that take the service too long", () => {
  const limitsOf = (asked: readonly { readonly limit: number }[]) => asked.map(({ limit }) => limit);

  test.each(["timeout", "server_error"] as const)(
    "are replaced by smaller ones after two walks with a %s",
    async (kind) => {
      const { walk, asked, behavior, seen } = walkOf({ total: 250, fails: (_, limit) => (limit > 100 ? kind : null) });
      for (let walks = 0; walks < 3; walks++) await walk();
      expect(limitsOf(asked)).toEqual([1_000, 1_000, 100, 1_000, 100, 100]);
      expect(behavior.limit).toBe(100);
      expect(seen.size).toBe(250);
      // The large size is tried again from time to time, without a failed walk.
      for (let walks = 3; walks < 250; walks++) expect(await walk()).toMatchObject({ ok: true, value: { seen: 250 } });
      expect(limitsOf(asked).filter((limit) => limit === 1_000)).toHaveLength(5);
    },
  );

  test("cost no extra call while every page fails, and are used again once they work", async () => {
    let isDown = true;
    const { walk, asked, behavior } = walkOf({ total: 250, fails: () => (isDown ? "timeout" : null) });
    for (let walks = 0; walks < 10; walks++) await walk();
    expect(limitsOf(asked)).toEqual([1_000, 1_000, 100, 1_000, 50, 1_000, 20, 1_000, 100, 1_000]);
    isDown = false;
    asked.length = 0;
    expect(await walk()).toMatchObject({ ok: true, value: { seen: 250, isExact: true } });
    expect(limitsOf(asked).slice(0, 2)).toEqual([50, 1_000]);
    expect(behavior.limit).toBe(1_000);
  });

  test.each(["timeout", "client_error"] as const)(
    "are replaced by the largest that works, even if a smaller one was the first to work after an outage (%s)",
    async (kind) => {
      let isDown = true;
      const fails = (_: number, limit: number) => (isDown ? "timeout" : limit > 100 ? kind : null);
      const { walk, asked, behavior } = walkOf({ total: 250, fails });
      for (let walks = 0; walks < 6; walks++) await walk();
      isDown = false;
      asked.length = 0;
      expect(await walk()).toMatchObject({ ok: true, value: { seen: 250 } });
      expect(limitsOf(asked)).toEqual([20, 1_000, 100, 100, 100]);
      expect(behavior.limit).toBe(100);
    },
  );

  test.each(["rate_limited", "budget", "aborted"] as const)(
    "are tried again in the next walk if %s prevented it, which says nothing about the size",
    async (kind) => {
      const failures: (typeof kind | "timeout" | null)[] = ["timeout", "timeout", null, kind];
      const { walk, asked, behavior } = walkOf({ total: 250, fails: () => failures.shift() ?? null });
      for (let walks = 0; walks < 4; walks++) await walk();
      expect(limitsOf(asked)).toEqual([1_000, 1_000, 100, 1_000, 100, 100, 100, 1_000, 1_000]);
      expect(behavior.limit).toBe(1_000);
    },
  );

  test("are replaced even if walks fail for other reasons in between", async () => {
    let walks = 0;
    const { walk, behavior } = walkOf({
      total: 250,
      fails: (_, limit) => (walks === 2 ? "unreachable" : limit > 100 ? "timeout" : null),
    });
    for (walks = 1; walks <= 4; walks++) await walk();
    expect(behavior.limit).toBe(100);
  });

  test.each([50, 102, 103])(
    "are replaced by even smaller ones if those are too large from walk %d on",
    async (from) => {
      let walks = 0;
      const { walk, behavior } = walkOf({
        total: 250,
        fails: (_, limit) => (limit > (walks < from ? 100 : 50) ? "timeout" : null),
      });
      for (walks = 0; walks < from + 4; walks++) await walk();
      expect(behavior.limit).toBe(50);
    },
  );

  test("fail no walk after one in which the smaller size failed too", async () => {
    let isDown = false;
    const { walk } = walkOf({ total: 250, fails: (_, limit) => (isDown || limit > 100 ? "timeout" : null) });
    for (let walks = 0; walks < 96; walks++) await walk();
    for (let walks = 0; walks < 10; walks++) {
      isDown = true;
      expect(await walk()).toMatchObject({ ok: false });
      isDown = false;
      expect(await walk()).toMatchObject({ ok: true });
    }
  });
});

describe("wrong knowledge is corrected at little cost", () => {
  test("a first page with one record causes no walk of a thousand pages", async () => {
    const { walk, asked } = walkOf({ total: 1_001, clamp: 1_000, first: 0 });
    expect(await walk()).toMatchObject({ value: { isExact: true } });
    expect(asked.length).toBeLessThanOrEqual(6);
  });

  test("a short first page does not set the page size", async () => {
    const { walk, asked } = walkOf({ total: 20_000, clamp: 1_000, shortFirst: 2 });
    await walk();
    expect(asked.length).toBeLessThanOrEqual(25);
  });

  test("a limit that was rejected once is requested again later", async () => {
    let isRefused = true;
    const { walk, behavior } = walkOf({
      total: 150,
      get reject() {
        return isRefused ? 100 : Number.POSITIVE_INFINITY;
      },
    });
    await walk();
    expect(behavior.limit).toBe(100);
    isRefused = false;
    for (let round = 0; round < 100; round++) await walk();
    expect(behavior.limit).toBe(1_000);
  });

  test("a rejection of the smaller page as well changes nothing", async () => {
    const { walk, behavior } = walkOf({ total: 150, fails: () => "client_error" });
    expect(await walk()).toMatchObject({ ok: false, error: { kind: "client_error" } });
    expect(behavior.limit).toBe(1_000);
  });

  test("a service that rejects every page gets one call per walk, and other sizes and page 0 in every fifth", async () => {
    let rejects = true;
    const { walk, asked } = walkOf({
      total: 150,
      first: 0,
      reject: 100,
      fails: () => (rejects ? "client_error" : null),
    });
    const calls: number[] = [];
    for (let walks = 0; walks < 10; walks++) {
      asked.length = 0;
      await walk();
      calls.push(asked.length);
    }
    expect(calls).toEqual([8, 1, 1, 1, 1, 8, 1, 1, 1, 1]);
    rejects = false;
    expect(await walk()).toMatchObject({ ok: true, value: { isExact: true, seen: 150 } });
  });
});

describe("a walk is not exact", () => {
  test("if a page fails, and reports the first error", async () => {
    const { walk } = walkOf({ total: 500, clamp: 100, fails: (page) => (page === 3 ? "server_error" : null) });
    const report = await walk();
    expect(report).toMatchObject({ ok: true, value: { isExact: false, seen: 400, error: { kind: "server_error" } } });
  });

  test("if the list shows fewer records than its total", async () => {
    const records = (asked: number) => Array.from({ length: asked > 1 ? 90 : 100 }, (_, index) => index);
    const { walk } = walkOf({ total: 100, records }, 50);
    expect(await walk()).toMatchObject({
      value: { end: "reached", isExact: false, seen: 90, total: 100, error: null },
    });
  });

  test("if the service rejects all pages after a certain record, and keeps those before", async () => {
    const { walk, asked } = walkOf({
      total: 1_000,
      clamp: 100,
      fails: (page) => (page > 4 ? "client_error" : null),
    });
    expect(await walk()).toMatchObject({ value: { end: "refused", seen: 400, error: { kind: "client_error" } } });
    expect(asked.length).toBeLessThanOrEqual(8);
  });
});

describe("a walk ends early", () => {
  test("immediately after a 429", async () => {
    const { walk, asked } = walkOf({ total: 10_000, clamp: 100, fails: (page) => (page >= 3 ? "rate_limited" : null) });
    expect(await walk()).toMatchObject({ value: { end: "cut", error: { kind: "rate_limited" } } });
    expect(asked.length).toBeLessThanOrEqual(6);
  });

  test("after five failed pages in a row", async () => {
    const { walk, asked } = walkOf({ total: 10_000, clamp: 100, fails: (page) => (page > 1 ? "timeout" : null) });
    expect(await walk()).toMatchObject({ value: { end: "cut" } });
    expect(asked.length).toBeLessThanOrEqual(8);
  });

  test("but not for three failed pages", async () => {
    const bad = (page: number) => (page >= 2 && page <= 4 ? "server_error" : null);
    const { walk } = walkOf({ total: 4_000, clamp: 100, fails: bad });
    expect(await walk()).toMatchObject({ value: { end: "reached", seen: 3_700, error: { kind: "server_error" } } });
  });

  test("with an error if the first page fails", async () => {
    const { walk } = walkOf({ total: 100, fails: () => "unreachable" });
    expect(await walk()).toMatchObject({ ok: false, error: { kind: "unreachable" } });
  });
});

test("a list with a maximum limit of 25 is walked with a smaller one, regardless of the configuration", async () => {
  for (const requested of [1_000, 100, 50]) {
    const { walk, seen, asked } = walkOf({ total: 150, reject: 25 }, requested);
    expect(await walk()).toMatchObject({ ok: true, value: { isExact: true } });
    expect(seen.size).toBe(150);
    asked.length = 0;
    await walk();
    expect(asked.every(({ limit }) => limit <= 25)).toBe(true);
  }
});
