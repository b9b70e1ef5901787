import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { createEventLog, EVENT_ROWS_MAX } from "../../../src/web/api/event-log.ts";
import { heldDecision, verifiedAction } from "./remediation-view-fixture.ts";

const decision = (at: number): JournalChange => ({ kind: "decision", row: { ...heldDecision, at } });

const pause = { at: 3, command: "pause", operator: "alice", node: null, action: null, detail: "paused" } as const;

test("records only decisions, actions and operator commands, in order", () => {
  const eventLog = createEventLog();
  eventLog.record([
    { kind: "fact", key: "remediation.pause", value: "1" },
    decision(1),
    { kind: "timer_gone", policy: "p", node: "n" },
    { kind: "action", row: verifiedAction },
    { kind: "command", row: pause },
  ]);
  expect(eventLog.lastNumber()).toBe(3);
  expect(eventLog.after(0, 10)).toEqual({
    rows: [
      { number: 1, event: decision(1) },
      { number: 2, event: { kind: "action", row: verifiedAction } },
      { number: 3, event: { kind: "command", row: pause } },
    ],
    missed: 0,
  });
  expect(eventLog.after(3, 10)).toEqual({ rows: [], missed: 0 });
});

test("returns the latest rows, oldest first, and how many were missed", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 3 * EVENT_ROWS_MAX }),
      fc.integer({ min: 0, max: 3 * EVENT_ROWS_MAX }),
      fc.integer({ min: 1, max: 2 * EVENT_ROWS_MAX }),
      (count, since, limit) => {
        const eventLog = createEventLog();
        const all = Array.from({ length: count }, (_, index) => index + 1);
        for (const at of all) eventLog.record([decision(at)]);
        const due = all.filter((number) => number > since);
        const recorded = due.slice(-Math.min(limit, EVENT_ROWS_MAX));
        const { rows, missed } = eventLog.after(since, limit);
        expect(rows.map(({ number }) => number)).toEqual(recorded);
        expect(rows.map(({ event: news }) => (news.kind === "decision" ? news.row.at : 0))).toEqual(recorded);
        expect(missed).toBe(due.length - recorded.length);
      },
    ),
    { numRuns: 30 },
  );
});
