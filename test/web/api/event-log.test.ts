import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Change } from "../../../src/model/remediation/journal.ts";
import { createFeed, FEED_ROWS_MAX } from "../../../src/web/api/event-log.ts";
import { heldDecision, verifiedAction } from "./remediation-view-fixture.ts";

const decision = (at: number): Change => ({ kind: "decision", row: { ...heldDecision, at } });

test("decisions and actions are news, in their order; whatever else changes is none", () => {
  const feed = createFeed();
  feed.note([
    { kind: "fact", key: "warden.paused", value: "1" },
    decision(1),
    { kind: "timer_gone", policy: "p", node: "n" },
    { kind: "action", row: verifiedAction },
  ]);
  expect(feed.last()).toBe(2);
  expect(feed.after(0, 10)).toEqual({
    rows: [
      { number: 1, news: decision(1) },
      { number: 2, news: { kind: "action", row: verifiedAction } },
    ],
    missed: 0,
  });
  expect(feed.after(2, 10)).toEqual({ rows: [], missed: 0 });
});

test("whoever asks gets the latest, oldest first, and is told how many there were before: as from a list of all", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 3 * FEED_ROWS_MAX }),
      fc.integer({ min: 0, max: 3 * FEED_ROWS_MAX }),
      fc.integer({ min: 1, max: 2 * FEED_ROWS_MAX }),
      (count, since, limit) => {
        const feed = createFeed();
        const all = Array.from({ length: count }, (_, index) => index + 1);
        for (const at of all) feed.note([decision(at)]);
        const due = all.filter((number) => number > since);
        const kept = due.slice(-Math.min(limit, FEED_ROWS_MAX));
        const { rows, missed } = feed.after(since, limit);
        expect(rows.map(({ number }) => number)).toEqual(kept);
        expect(rows.map(({ news }) => (news.kind === "decision" ? news.row.at : 0))).toEqual(kept);
        expect(missed).toBe(due.length - kept.length);
      },
    ),
    { numRuns: 30 },
  );
});
