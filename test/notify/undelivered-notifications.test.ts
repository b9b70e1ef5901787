import { expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import type { Notification } from "../../src/model/remediation/notification.ts";
import { NOTIFICATIONS_PER_REQUEST_MAX } from "../../src/notify/retry-queue.ts";
import { accepted, down, notification, refused, start } from "./notifier-fixture.ts";

const summariesOf = (queued: ReadonlyMap<string, readonly Notification[]>) =>
  [...queued].map(([receiver, notifications]) => [receiver, notifications.map(({ summary }) => summary)]);

test("undelivered notifications are returned by stop after a last attempt, oldest first and by receiver, and are not counted", async () => {
  const { clock, notifier, log, counts } = start({
    oncall: () => down,
    slow: () => "hang",
    strict: () => refused,
    alerts: () => accepted,
  });
  for (let number = 0; number <= NOTIFICATIONS_PER_REQUEST_MAX; number++) {
    notifier.notify(notification({ summary: String(number) }), "oncall");
  }
  notifier.notify(notification({ summary: "in flight" }), "slow");
  await clock.advance(0);
  for (const receiver of ["slow", "strict", "alerts"]) notifier.notify(notification({ summary: "late" }), receiver);
  const stopped = notifier.stop(500);
  await clock.advance(500);
  expect(summariesOf(await stopped)).toEqual([
    ["oncall", Array.from({ length: NOTIFICATIONS_PER_REQUEST_MAX + 1 }, (_, number) => String(number))],
    ["slow", ["in flight", "late"]],
  ]);
  await clock.advance(MINUTE_MS);
  expect(await counts()).toEqual(["strict failed 1", "alerts sent 1"]);
  expect(log.lines.filter(({ level }) => level === "error")).toMatchObject([{ fields: { receiver: "strict" } }]);
});

test("undelivered notifications are sent by the next notifier, before new ones", async () => {
  const { clock, notifier, summaries, counts } = start({ oncall: () => accepted });
  notifier.resume([], new Map([["oncall", [notification({ summary: "first" }), notification({ summary: "second" })]]]));
  notifier.notify(notification({ summary: "new" }));
  await clock.advance(0);
  expect(summaries("oncall").flat()).toEqual(["first", "second", "new"]);
  expect(await counts()).toEqual(["oncall sent 3"]);
});

test("undelivered notifications are dropped with a log line and counted if their receiver no longer exists", async () => {
  const { notifier, log, counts } = start({ oncall: () => accepted });
  notifier.resume([], new Map([["pager", [notification(), notification()]]]));
  expect(log.lines).toMatchObject([{ level: "error", fields: { receiver: "pager", notifications: 2 } }]);
  expect(await counts()).toEqual(["pager dropped 2"]);
});
