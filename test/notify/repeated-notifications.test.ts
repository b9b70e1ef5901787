import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../src/base/duration.ts";
import { NOTIFICATIONS_PER_REQUEST_MAX } from "../../src/notify/retry-queue.ts";
import { START_MS } from "../harness/daemon/virtual-daemon.ts";
import { accepted, down, notification, refused, type Sending, start, storm } from "./notifier-fixture.ts";

const MINUTE = 60_000;

describe("an active notification", () => {
  const summaries = ({ at, notifications }: Sending) =>
    `${at / 1_000} ${notifications.map(({ endsAt }) => endsAt ?? "on")}`;

  test("is repeated until it is resolved, to receivers that want repetitions", async () => {
    const { clock, notifier, sendings, counts } = start(
      { alerts: () => accepted, oncall: () => accepted },
      { alerts: MINUTE },
    );
    await clock.advance(30_000);
    notifier.notify(storm);
    await clock.advance(3 * MINUTE);
    notifier.notify({ ...storm, endsAt: 7 });
    await clock.advance(1);
    expect(sendings.alerts!.map(summaries)).toEqual(["30 on", "60 on", "120 on", "180 on", "210 7"]);
    await clock.advance(5 * MINUTE);
    expect(sendings.oncall!.map(summaries)).toEqual(["30 on", "210 7"]);
    // Repetitions are not counted.
    expect(await counts()).toEqual(["alerts sent 2", "oncall sent 2"]);
  });

  test("is resolved with its original labels and a new summary", async () => {
    const { clock, notifier, sendings } = start({ alerts: () => accepted });
    notifier.notify(storm);
    notifier.notify({ ...storm, severity: "info", region: "us-east", summary: "It is over", endsAt: 7 });
    await clock.advance(1_000);
    const end = sendings.alerts!.flatMap(({ notifications }) => notifications).at(-1);
    expect(end).toEqual({ ...storm, summary: "It is over", endsAt: 7 });
  });

  test("is resumed by the next notifier without being sent again to receivers that want no repetitions", async () => {
    const first = start({ alerts: () => accepted });
    first.notifier.notify(storm);
    first.notifier.notify(notification());
    const next = start({ alerts: () => accepted, oncall: () => accepted }, { alerts: MINUTE });
    next.notifier.resume(first.notifier.activeNotifications());
    await next.clock.advance(MINUTE);
    expect(next.sendings.alerts!.map(summaries)).toEqual(["60 on"]);
    expect(next.sendings.oncall).toEqual([]);
  });

  test("is repeated although the receiver refuses others", async () => {
    const { clock, notifier, sendings } = start(
      { alerts: (sending) => (sending === 3 ? refused : accepted) },
      { alerts: MINUTE },
    );
    for (let number = 0; number <= NOTIFICATIONS_PER_REQUEST_MAX; number++)
      notifier.notify({ ...storm, key: `storm/${number}` });
    await clock.advance(MINUTE);
    const counts = sendings.alerts!.map(({ at, notifications }) => [at, notifications.length]);
    expect(counts).toEqual([
      [0, NOTIFICATIONS_PER_REQUEST_MAX],
      [0, 1],
      [MINUTE, NOTIFICATIONS_PER_REQUEST_MAX],
      [MINUTE, 1],
    ]);
  });

  test("is not retried if a repetition fails", async () => {
    const { clock, notifier, sendings, counts } = start(
      { alerts: (sending) => (sending === 2 ? down : accepted) },
      { alerts: MINUTE },
    );
    notifier.notify(storm);
    await clock.advance(2 * MINUTE);
    expect(sendings.alerts!.map(summaries)).toEqual(["0 on", "60 on", "120 on"]);
    expect(await counts()).toEqual(["alerts sent 1"]);
  });
});

describe("an Alertmanager that restarts has forgotten all alerts", () => {
  const sentEnds = (sendings: readonly Sending[]) =>
    sendings.map(({ at, notifications }) => [at / MINUTE, ...notifications.map(({ endsAt }) => endsAt)]);

  test("so an event is repeated for an hour, with the time at which its alert ends", async () => {
    const { clock, notifier, sendings, counts } = start(
      { alerts: (sending) => (sending === 1 ? down : accepted), oncall: () => accepted },
      { alerts: MINUTE },
    );
    notifier.notify(notification());
    await clock.advance(2 * HOUR_MS);
    const end = START_MS + 1_000 + HOUR_MS;
    const repetitions = Array.from({ length: 60 }, (_, index) => [index + 1, end]);
    expect(sentEnds(sendings.alerts!).slice(2)).toEqual(repetitions);
    expect(sendings.oncall).toHaveLength(1);
    expect(await counts()).toEqual(["alerts sent 1", "oncall sent 1"]);
  });

  test("so the end of a condition is repeated for 15 minutes, but not once it has begun again", async () => {
    const { clock, notifier, sendings } = start({ alerts: () => accepted }, { alerts: MINUTE });
    notifier.notify(storm);
    notifier.notify({ ...storm, endsAt: 7 });
    await clock.advance(30 * MINUTE);
    const repetitions = Array.from({ length: 14 }, (_, index) => [index + 1, 7]);
    expect(sentEnds(sendings.alerts!)).toEqual([[0, null, 7], ...repetitions]);
    notifier.notify({ ...storm, endsAt: 8 });
    notifier.notify(storm);
    await clock.advance(2 * MINUTE);
    expect(sentEnds(sendings.alerts!).slice(-2)).toEqual([
      [31, null],
      [32, null],
    ]);
  });

  test("but what it refused is not repeated", async () => {
    const { clock, notifier, sendings } = start({ alerts: () => refused }, { alerts: MINUTE });
    notifier.notify(notification());
    await clock.advance(2 * MINUTE);
    expect(sendings.alerts).toHaveLength(1);
  });
});
