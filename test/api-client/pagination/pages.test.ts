import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PAGE_LIMIT_FALLBACK } from "../../../src/api-client/pagination/pages.ts";
import { walkOf } from "./page-list.ts";

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
      const { walk, seen, habits: behaviour } = walkOf(list);
      const report = await walk();
      expect(report).toMatchObject({
        ok: true,
        value: { end: "reached", isExact: true, total: list.total, error: null },
      });
      expect(seen.size).toBe(list.total);
      if (list.total > 1) expect(behaviour.first).toBe(list.first);
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
    const { walk, asked, habits: behaviour } = walkOf({ total: 150, reject: 100 });
    await walk();
    expect(behaviour.limit).toBe(PAGE_LIMIT_FALLBACK);
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
    const { walk, habits: behaviour } = walkOf(list);
    await walk();
    total = 250;
    expect(await walk()).toMatchObject({ value: { isExact: true, seen: 250 } });
    expect(behaviour.first).toBe(0);
  });

  test("a service that counts from 0 is found out after a time in which it ignored the page number", async () => {
    let isIgnored = true;
    const { walk, seen, habits: behaviour } = walkOf({ total: 120, clamp: 50, first: 0, ignoresPage: () => isIgnored });
    for (let walks = 0; walks < 5; walks++) await walk();
    expect(behaviour.firstKnown).toBe(false);
    isIgnored = false;
    await walk();
    expect(seen.size).toBe(120);
    expect(behaviour.first).toBe(0);
  });

  test("a service that takes page 0 for page 1 is not taken for one that counts from 0", async () => {
    const { walk, habits: behaviour } = walkOf({ total: 300, clamp: 100, zeroIsOne: true, missing: 20 });
    for (let round = 0; round < 5; round++) expect(await walk()).toMatchObject({ value: { seen: 280, total: 300 } });
    expect(behaviour.first).toBe(1);
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
    const { walk, habits: behaviour } = walkOf({
      total: 150,
      get reject() {
        return isRefused ? 100 : Number.POSITIVE_INFINITY;
      },
    });
    await walk();
    expect(behaviour.limit).toBe(100);
    isRefused = false;
    for (let round = 0; round < 100; round++) await walk();
    expect(behaviour.limit).toBe(1_000);
  });

  test("a refusal that the smaller page meets too changes nothing", async () => {
    const { walk, habits: behaviour } = walkOf({ total: 150, fails: () => "client_error" });
    expect(await walk()).toMatchObject({ ok: false, error: { kind: "client_error" } });
    expect(behaviour.limit).toBe(1_000);
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

describe("a walk is given up", () => {
  test("at once after a 429: the refused cycle is abandoned", async () => {
    const { walk, asked } = walkOf({ total: 10_000, clamp: 100, fails: (page) => (page >= 3 ? "rate_limited" : null) });
    expect(await walk()).toMatchObject({ value: { end: "cut", error: { kind: "rate_limited" } } });
    expect(asked.length).toBeLessThanOrEqual(6);
  });

  test("after five failed pages in a row: no storm of retries over a broken list", async () => {
    const { walk, asked } = walkOf({ total: 10_000, clamp: 100, fails: (page) => (page > 1 ? "timeout" : null) });
    expect(await walk()).toMatchObject({ value: { end: "cut" } });
    expect(asked.length).toBeLessThanOrEqual(8);
  });

  test("not for three bad pages: the rest of the list is read", async () => {
    const bad = (page: number) => (page >= 2 && page <= 4 ? "server_error" : null);
    const { walk } = walkOf({ total: 4_000, clamp: 100, fails: bad });
    expect(await walk()).toMatchObject({ value: { end: "reached", seen: 3_700, error: { kind: "server_error" } } });
  });

  test("whole where the first page fails", async () => {
    const { walk } = walkOf({ total: 100, fails: () => "unreachable" });
    expect(await walk()).toMatchObject({ ok: false, error: { kind: "unreachable" } });
  });
});

test("a service that rejects a limit over 25 is walked with a smaller one, whatever the configuration asks for", async () => {
  for (const requested of [1_000, 100, 50]) {
    const { walk, seen, asked } = walkOf({ total: 150, reject: 25 }, requested);
    expect(await walk()).toMatchObject({ ok: true, value: { isExact: true } });
    expect(seen.size).toBe(150);
    asked.length = 0;
    await walk();
    expect(asked.every(({ limit }) => limit <= 25)).toBe(true);
  }
});
