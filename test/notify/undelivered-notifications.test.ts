import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { NOTIFICATIONS_PER_REQUEST_MAX, QUEUED_NOTIFICATIONS_MAX } from "../../src/notify/retry-queue.ts";
import { accepted, createFacts, down, notification, refused, start } from "./notifier-fixture.ts";

const batch = Array.from({ length: NOTIFICATIONS_PER_REQUEST_MAX }, (_, number) => String(number));

test("undelivered notifications outlive a killed notifier: the next one sends them to the same receivers, in order and before new ones", async () => {
  const facts = createFacts();
  const killed = start(
    { oncall: () => down, slow: () => "hang", strict: () => refused, alerts: () => accepted },
    {},
    facts,
  );
  for (const summary of batch) killed.notifier.notify(notification({ summary }), "oncall");
  await killed.clock.advance(0);
  killed.notifier.notify(notification({ summary: "in flight" }), "slow");
  await killed.clock.advance(0);
  for (const receiver of ["oncall", "slow", "strict", "alerts"])
    killed.notifier.notify(notification({ summary: "late" }), receiver);
  await killed.clock.advance(0);
  expect(await killed.queued()).toEqual(["oncall 101", "slow 2", "strict 0", "alerts 0"]);

  const next = start({ oncall: () => accepted, slow: () => accepted, alerts: () => accepted }, {}, facts);
  next.notifier.notify(notification({ summary: "new" }));
  await next.clock.advance(0);
  expect(next.summaries("oncall").flat()).toEqual([...batch, "late", "new"]);
  expect(next.summaries("slow").flat()).toEqual(["in flight", "late", "new"]);
  expect(next.summaries("alerts").flat()).toEqual(["new"]);
  expect(await next.queued()).toEqual(["oncall 0", "slow 0", "alerts 0"]);

  const last = start({ oncall: () => accepted, slow: () => accepted }, {}, facts);
  await last.clock.advance(0);
  expect(last.sendings).toEqual({ oncall: [], slow: [] });
});

test("undelivered notifications outlive a stopped notifier after a last attempt, and are not counted", async () => {
  const facts = createFacts();
  const stopped = start({ oncall: () => down, slow: () => "hang", strict: () => refused }, {}, facts);
  stopped.notifier.notify(notification({ summary: "first" }), "slow");
  await stopped.clock.advance(0);
  stopped.notifier.notify(notification({ summary: "second" }));
  const stopping = stopped.notifier.stop(500);
  await stopped.clock.advance(500);
  await stopping;
  await stopped.clock.advance(MINUTE_MS);
  expect(await stopped.counts()).toEqual(["strict failed 1"]);
  expect(await stopped.queued()).toEqual([]);

  const next = start({ oncall: () => accepted, slow: () => accepted, strict: () => accepted }, {}, facts);
  await next.clock.advance(0);
  expect(next.summaries("oncall").flat()).toEqual(["second"]);
  expect(next.summaries("slow").flat()).toEqual(["first", "second"]);
  expect(next.sendings.strict).toEqual([]);
});

test("the end of a condition whose beginning was not delivered follows it, and the condition is repeated in between", async () => {
  const facts = createFacts();
  const storm = notification({ kind: "storm", key: "storm/1", summary: "Storm" });
  const killed = start({ alerts: () => down }, {}, facts);
  killed.notifier.notify(storm);
  await killed.clock.advance(0);
  const next = start({ alerts: () => accepted }, { alerts: MINUTE_MS }, facts);
  await next.clock.advance(MINUTE_MS);
  expect(next.notifier.activeNotifications()).toEqual([storm]);
  next.notifier.notify({ ...storm, endsAt: 7 });
  await next.clock.advance(0);
  const sent = next.sendings.alerts!.flatMap(({ notifications }) => notifications);
  expect(sent).toEqual([storm, storm, { ...storm, endsAt: 7 }]);
});

test("a full queue outlives a restart as a whole, with the notifications that are being sent", async () => {
  const facts = createFacts();
  const killed = start({ oncall: () => down }, {}, facts);
  for (const summary of batch) killed.notifier.notify(notification({ summary }));
  await killed.clock.advance(0);
  for (let number = 0; number < QUEUED_NOTIFICATIONS_MAX; number++) killed.notifier.notify(notification());
  await killed.clock.advance(0);
  const [kept] = await killed.queued();
  const next = start({ oncall: () => accepted }, {}, facts);
  await next.clock.advance(0);
  expect(kept).toBe(`oncall ${QUEUED_NOTIFICATIONS_MAX}`);
  expect(await next.counts()).toEqual([`oncall sent ${QUEUED_NOTIFICATIONS_MAX}`]);
});

test("undelivered notifications are dropped with a log line and counted if their receiver no longer exists", async () => {
  const facts = createFacts();
  const killed = start({ pager: () => down }, {}, facts);
  killed.notifier.notify(notification());
  killed.notifier.notify(notification());
  await killed.clock.advance(0);
  const next = start({ oncall: () => accepted }, {}, facts);
  expect(next.log.lines).toMatchObject([{ level: "error", fields: { receiver: "pager", notifications: 2 } }]);
  expect(await next.counts()).toEqual(["pager dropped 2"]);
  expect(start({ pager: () => accepted }, {}, facts).log.lines).toEqual([]);
});

test("a reload does not extend the hour for which a notification is retried", async () => {
  const facts = createFacts();
  const first = start({ oncall: () => down }, {}, facts);
  first.notifier.notify(notification());
  await first.clock.advance(40 * MINUTE_MS);
  await first.notifier.stop(SECOND_MS);
  const next = start({ oncall: () => down }, {}, facts);
  await next.clock.advance(15 * MINUTE_MS);
  expect(await next.queued()).toEqual(["oncall 1"]);
  await next.clock.advance(10 * MINUTE_MS);
  expect(await next.counts()).toEqual(["oncall failed 1"]);
});

test("a kill extends the hour by a few minutes at most", async () => {
  const facts = createFacts();
  const killed = start({ oncall: () => down }, {}, facts);
  killed.notifier.notify(notification());
  await killed.clock.advance(40 * MINUTE_MS);
  const next = start({ oncall: () => down }, {}, facts);
  await next.clock.advance(15 * MINUTE_MS);
  expect(await next.queued()).toEqual(["oncall 1"]);
  await next.clock.advance(10 * MINUTE_MS);
  expect(await next.counts()).toEqual(["oncall failed 1"]);
});

test("a receiver that is down for fifty minutes gets what was sent meanwhile", async () => {
  let isUp = false;
  const { clock, notifier, counts } = start({ oncall: () => (isUp ? accepted : down) });
  notifier.notify(notification());
  await clock.advance(50 * MINUTE_MS);
  isUp = true;
  await clock.advance(2 * MINUTE_MS);
  expect(await counts()).toEqual(["oncall sent 1"]);
});
