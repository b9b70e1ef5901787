import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../src/base/duration.ts";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { DeliveryResult, Notification, Receiver } from "../../src/model/remediation/notification.ts";
import { Notifier } from "../../src/notify/notifier.ts";
import { NOTIFICATIONS_PER_REQUEST_MAX, QUEUED_NOTIFICATIONS_MAX } from "../../src/notify/retry-queue.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createRecordingLog, START_MS } from "../harness/daemon/virtual-daemon.ts";
import { accepted, down, notification, refused, start, storm } from "./notifier-fixture.ts";

const MINUTE = 60_000;

describe("notify", () => {
  test("sends to all receivers, or to the given one", async () => {
    const { clock, notifier, sendings, counts } = start({ oncall: () => accepted, alerts: () => accepted });
    notifier.notify(notification());
    notifier.notify(notification({ key: "step/ep-2/4" }), "oncall");
    await clock.advance(1_000);
    expect(sendings.oncall!.flatMap(({ notifications }) => notifications.map(({ key }) => key))).toEqual([
      "step/ep-1/4",
      "step/ep-2/4",
    ]);
    expect(sendings.alerts!.flatMap(({ notifications }) => notifications)).toHaveLength(1);
    expect(await counts()).toEqual(["oncall sent 2", "alerts sent 1"]);
  });

  test("logs an unknown receiver", async () => {
    const { clock, notifier, log, sendings } = start({ oncall: () => accepted });
    notifier.notify(notification(), "unknown");
    await clock.advance(1_000);
    expect(sendings.oncall).toEqual([]);
    expect(log.lines).toMatchObject([{ level: "error", fields: { receiver: "unknown" } }]);
  });

  test("counts every outcome of every receiver from zero", async () => {
    const metrics = createDaemonMetrics({ process: false });
    const clock = createVirtualClock(START_MS);
    const receivers = [{ name: "oncall", send: async () => ({ ok: true }) as const }];
    new Notifier({ receivers, clock, random: () => 0.5, log: createRecordingLog(), metrics });
    const text = await metrics.render("text");
    for (const outcome of ["sent", "failed", "dropped"]) {
      expect(text).toContain(`proxywarden_notifications_total{receiver="oncall",outcome="${outcome}"} 0\n`);
    }
  });
});

describe("a receiver that fails", () => {
  test("is retried for an hour, after 1 s, 2 s, 4 s and so on up to a minute, without delaying other receivers", async () => {
    const { clock, notifier, sendings, counts } = start({ oncall: () => down, alerts: () => accepted });
    notifier.notify(notification());
    await clock.advance(2 * HOUR_MS);
    const waits = sendings.oncall!.map(({ at }, index) => (at - (sendings.oncall![index - 1]?.at ?? at)) / 1_000);
    expect(waits.slice(0, 7)).toEqual([0, 1, 2, 4, 8, 16, 32]);
    expect(new Set(waits.slice(7))).toEqual(new Set([60]));
    expect(sendings.oncall!.at(-1)!.at / HOUR_MS).toBeCloseTo(1, 1);
    expect(sendings.alerts).toMatchObject([{ at: 0 }]);
    expect(await counts()).toEqual(["oncall failed 1", "alerts sent 1"]);
  });

  test("still gets notifications about anything but what it can't process, within seconds", async () => {
    const answered = ({ summary }: Notification) => (summary.startsWith("odd") ? down : accepted);
    const { clock, notifier, sendings, counts } = start({ oncall: (_, notifications) => answered(notifications[0]!) });
    notifier.notify(notification({ episode: "odd", summary: "odd" }));
    for (const summary of ["one", "two"]) notifier.notify(notification({ episode: summary, summary }));
    await clock.advance(30 * MINUTE);
    notifier.notify(notification({ episode: "odd", summary: "odd, resolved", endsAt: 7 }));
    notifier.notify(notification({ episode: "new", summary: "new" }));
    await clock.advance(MINUTE);
    const sentAt = (sought: string) =>
      sendings.oncall!.find(({ notifications }) => notifications[0]!.summary === sought)!.at / 1_000;
    expect(["one", "two"].map(sentAt)).toEqual([3, 4]);
    expect(sentAt("new")).toBeLessThan(30 * 60 + 10);
    expect(sendings.oncall!.some(({ notifications }) => notifications[0]!.summary === "odd, resolved")).toBe(false);
    await clock.advance(HOUR_MS + 2 * MINUTE);
    expect(await counts()).toEqual(["oncall sent 3", "oncall failed 2"]);
  });

  test("still gets hundreds of others within seconds", async () => {
    const { clock, notifier, counts } = start({
      oncall: (_, notifications) => (notifications.some(({ summary }) => summary === "odd") ? down : accepted),
    });
    for (const summary of ["odd", ...Array.from({ length: 500 }, (_, number) => `${number}`)])
      notifier.notify(notification({ episode: summary, summary }));
    await clock.advance(15_000);
    expect(await counts()).toEqual(["oncall sent 500"]);
  });

  test("gets batches again once those in a batch that it did not accept are delivered", async () => {
    const { clock, notifier, summaries } = start({ oncall: (sending) => (sending === 2 ? down : accepted) });
    for (const count of [1, 100, 100]) {
      for (let number = 0; number < count; number++) notifier.notify(notification({ episode: `${number}` }));
      await clock.advance(10_000);
    }
    expect(summaries("oncall").map(({ length }) => length)).toEqual([1, 100, ...Array(100).fill(1), 100]);
  });

  test("still gets them if new ones come more often than it is retried", async () => {
    const { clock, notifier, log, counts } = start({
      oncall: (_, notifications) => (notifications.some(({ summary }) => summary === "odd") ? down : accepted),
    });
    for (const summary of ["odd", ...Array.from({ length: 100 }, (_, number) => `${number}`)]) {
      notifier.notify(notification({ episode: summary, summary }));
      await clock.advance(900);
    }
    await clock.advance(MINUTE);
    expect(await counts()).toEqual(["oncall sent 100"]);
    expect(log.lines.map(({ message }) => message)).toEqual(["receiver does not accept notifications"]);
  });

  test("gets what was queued in batches once it recovers, even if it accepted others before it failed", async () => {
    let isUp = true;
    const { clock, notifier, summaries } = start({ oncall: () => (isUp ? accepted : down) });
    notifier.notify(notification());
    await clock.advance(MINUTE);
    isUp = false;
    for (let number = 0; number < 250; number++) notifier.notify(notification({ episode: `${number}` }));
    await clock.advance(MINUTE);
    const tried = summaries("oncall").length;
    isUp = true;
    await clock.advance(2 * MINUTE);
    const sizes = summaries("oncall").map(({ length }) => length);
    expect(sizes.slice(tried)).toEqual([1, 100, 100, 49]);
  });

  test("gets what was queued, in order and in batches, once it recovers; failure and recovery are logged once", async () => {
    const { clock, notifier, sendings, log, counts } = start({
      oncall: (sending) => (sending <= 3 ? down : accepted),
    });
    for (let number = 0; number < 250; number++) notifier.notify(notification({ summary: String(number) }));
    await clock.advance(MINUTE);
    const summaries = sendings
      .oncall!.slice(3)
      .flatMap(({ notifications }) => notifications.map(({ summary }) => Number(summary)));
    expect(summaries).toEqual(Array.from({ length: 250 }, (_, index) => index));
    expect(
      sendings.oncall!.slice(3).every(({ notifications }) => notifications.length <= NOTIFICATIONS_PER_REQUEST_MAX),
    ).toBe(true);
    expect(sendings.oncall!.length).toBeLessThanOrEqual(7);
    expect(log.lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      "warn: receiver does not accept notifications",
      "info: receiver accepts notifications again",
    ]);
    expect(await counts()).toEqual(["oncall sent 250"]);
  });

  test("gets a notification that it refuses once, and still gets later ones", async () => {
    const { clock, notifier, summaries, counts } = start({
      oncall: (sending) => (sending === 1 ? refused : accepted),
    });
    notifier.notify(notification({ summary: "odd" }));
    await clock.advance(1_000);
    notifier.notify(notification({ summary: "even" }));
    await clock.advance(MINUTE);
    expect(summaries("oncall")).toEqual([["odd"], ["even"]]);
    expect(await counts()).toEqual(["oncall sent 1", "oncall failed 1"]);
  });

  test("still gets the others that were sent together with one that it refuses", async () => {
    const { clock, notifier, counts } = start({
      oncall: (_, notifications) => (notifications.some(({ summary }) => summary === "odd") ? refused : accepted),
    });
    for (const summary of ["one", "odd", "two"]) notifier.notify(notification({ summary, episode: summary }));
    await clock.advance(MINUTE);
    expect(await counts()).toEqual(["oncall sent 2", "oncall failed 1"]);
  });

  test("is logged and still gets later notifications if its promise rejects", async () => {
    const clock = createVirtualClock(START_MS);
    const log = createRecordingLog();
    let sendings = 0;
    const receiver: Receiver = {
      name: "odd",
      async send() {
        sendings++;
        throw new Error("a bug");
      },
    };
    const notifier = new Notifier({ receivers: [receiver], clock, random: () => 0.5, log });
    notifier.notify(notification());
    await clock.advance(1_000);
    notifier.notify(notification());
    await clock.advance(1_000);
    expect(sendings).toBe(2);
    expect(log.lines[0]).toMatchObject({ level: "error", message: "receiver failed unexpectedly" });
  });
});

test("drops and counts the oldest notifications if the queue is full, and logs that once", async () => {
  const { clock, notifier, log, sendings, counts } = start({
    oncall: (sending) => (sending === 1 ? "hang" : accepted),
  });
  notifier.notify(notification({ summary: "first" }));
  await clock.advance(1);
  // The one that is being sent counts too.
  for (let number = 1; number < QUEUED_NOTIFICATIONS_MAX + 5; number++)
    notifier.notify(notification({ summary: String(number) }));
  expect(sendings.oncall).toHaveLength(1);
  expect(await counts()).toEqual(["oncall dropped 5"]);
  const stopped = notifier.stop(MINUTE);
  await clock.advance(2 * MINUTE);
  await stopped;
  expect(log.lines.filter(({ message }) => message.includes("queue is full"))).toHaveLength(1);
});

describe("stop", () => {
  test("sends what is queued immediately, with one attempt each", async () => {
    const { clock, notifier, sendings, counts } = start({ oncall: (sending) => (sending <= 5 ? down : accepted) });
    notifier.notify(notification());
    await clock.advance(15_500);
    notifier.notify(notification({ summary: "late" }));
    const stopped = notifier.stop(5_000);
    await clock.advance(0);
    await stopped;
    expect(sendings.oncall!.map(({ at }) => at / 1_000)).toEqual([0, 1, 3, 7, 15, 15.5]);
    expect(await counts()).toEqual(["oncall sent 2"]);
  });

  test("returns after the grace period, and sends nothing more", async () => {
    const { clock, notifier, counts } = start({ oncall: () => "hang", alerts: () => accepted }, { alerts: MINUTE });
    notifier.notify(notification());
    await clock.advance(0);
    for (let number = 0; number < 3; number++) notifier.notify(notification());
    let isStopped = false;
    const stopped = notifier.stop(5_000).then(() => {
      isStopped = true;
    });
    await clock.advance(4_999);
    expect(isStopped).toBe(false);
    await clock.advance(1);
    await stopped;
    await clock.advance(1);
    expect(await counts()).toEqual(["alerts sent 4"]);
    expect(clock.sleeperCount()).toBe(0);
  });

  test("does not wait for a receiver that ignores the signal", async () => {
    const clock = createVirtualClock(START_MS);
    const stuck: Receiver = { name: "stuck", send: () => new Promise(() => {}) };
    const notifier = new Notifier({ receivers: [stuck], clock, random: () => 0.5, log: createRecordingLog() });
    notifier.notify(notification());
    const stopped = notifier.stop(5_000);
    await clock.advance(5_000);
    await stopped;
  });

  test("during a repetition sends what is queued once that has ended", async () => {
    const clock = createVirtualClock(START_MS);
    const repetition = Promise.withResolvers<DeliveryResult>();
    const sent: (readonly string[])[] = [];
    const alerts: Receiver = {
      name: "alerts",
      repeatMs: MINUTE,
      async send(notifications) {
        sent.push(notifications.map(({ key }) => key));
        if (sent.length === 3) return repetition.promise;
        return sent.length === 2 ? { ok: false, error: "it answered 503", isFinal: false } : { ok: true };
      },
    };
    const notifier = new Notifier({ receivers: [alerts], clock, random: () => 0.5, log: createRecordingLog() });
    notifier.notify(storm);
    await clock.advance(MINUTE - 1);
    notifier.notify(notification());
    await clock.advance(1);
    const stopped = notifier.stop(5_000);
    repetition.resolve({ ok: true });
    await clock.advance(0);
    await stopped;
    expect(sent).toEqual([["storm"], ["step/ep-1/4"], ["storm"], ["step/ep-1/4"]]);
    expect(clock.sleeperCount()).toBe(0);
  });

  test("does not resolve active notifications", async () => {
    const { clock, notifier, sendings } = start({ alerts: () => accepted }, { alerts: MINUTE });
    notifier.notify(storm);
    await clock.advance(1_000);
    await notifier.stop(5_000);
    await clock.advance(10 * MINUTE);
    expect(sendings.alerts).toHaveLength(1);
  });
});
