import { describe, expect, test } from "vitest";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { DeliveryResult, Notification, Receiver } from "../../src/model/remediation/notification.ts";
import { createNotifier } from "../../src/notify/notifier.ts";
import { ATTEMPTS_MAX, NOTIFICATIONS_PER_REQUEST_MAX, QUEUED_NOTIFICATIONS_MAX } from "../../src/notify/retry-queue.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createRecordingLog, START_MS } from "../harness/virtual-daemon.ts";

const MINUTE = 60_000;
const notification = (parts: Partial<Notification> = {}): Notification => ({
  kind: "step",
  key: "step/ep-1/4",
  severity: "warning",
  summary: "node_1 is not healed",
  policy: "reboot-offline",
  node: "node_1",
  episode: "ep-1",
  region: "eu-west",
  startsAt: START_MS,
  endsAt: null,
  ...parts,
});
const storm = notification({ kind: "storm", key: "storm", node: null, episode: null, summary: "40 % are unhealthy" });

type Answer = DeliveryResult | "hang";
const acceptedAnswer: Answer = { ok: true };
const down: Answer = { ok: false, error: "connect ECONNREFUSED", isFinal: false };
const refused: Answer = { ok: false, error: "it answered 400", isFinal: true };

type Sending = Readonly<{ at: number; notices: readonly Notification[] }>;

function open(answers: Record<string, (sending: number) => Answer>, repeats: Record<string, number> = {}) {
  const clock = createVirtualClock(START_MS);
  const log = createRecordingLog();
  const metrics = createDaemonMetrics({ process: false });
  const sendings: Record<string, Sending[]> = {};
  const receivers = Object.entries(answers).map(([name, answer]): Receiver => {
    const ownSendings: Sending[] = [];
    sendings[name] = ownSendings;
    return {
      name,
      ...(repeats[name] === undefined ? {} : { repeatMs: repeats[name] }),
      async send(notifications, signal) {
        ownSendings.push({ at: clock.monotonic(), notices: notifications });
        const given = answer(ownSendings.length);
        if (given !== "hang") return given;
        await clock.sleep(Number.POSITIVE_INFINITY, signal);
        return { ok: false, error: "given up", isFinal: false };
      },
    };
  });
  const notifier = createNotifier({ receivers, clock, random: () => 0.5, log, metrics });
  const counts = async () =>
    (await metrics.render("text"))
      .split("\n")
      .filter((line) => line.startsWith("proxywarden_notifications_total{") && !line.endsWith(" 0"))
      .map((line) => line.replace(/^\S+?\{receiver="(.+)",outcome="(.+)"\} (\d+)$/, "$1 $2 $3"));
  const summaries = (name: string) =>
    sendings[name]!.map(({ notices: notifications }) => notifications.map(({ summary }) => summary));
  return { clock, log, notifier, sendings, counts, summaries };
}

describe("who is told", () => {
  test("all receivers, or the one that is named", async () => {
    const { clock, notifier, sendings, counts } = open({ oncall: () => acceptedAnswer, alerts: () => acceptedAnswer });
    notifier.notify(notification());
    notifier.notify(notification({ key: "step/ep-2/4" }), "oncall");
    await clock.advance(1_000);
    expect(sendings.oncall!.flatMap(({ notices: notifications }) => notifications.map(({ key }) => key))).toEqual([
      "step/ep-1/4",
      "step/ep-2/4",
    ]);
    expect(sendings.alerts!.flatMap(({ notices: notifications }) => notifications)).toHaveLength(1);
    expect(await counts()).toEqual(["oncall sent 2", "alerts sent 1"]);
  });

  test("a name that nobody has is logged, and stops nothing", async () => {
    const { clock, notifier, log, sendings } = open({ oncall: () => acceptedAnswer });
    notifier.notify(notification(), "nobody");
    await clock.advance(1_000);
    expect(sendings.oncall).toEqual([]);
    expect(log.lines).toMatchObject([{ level: "error", fields: { receiver: "nobody" } }]);
  });

  test("every outcome of every receiver is counted from zero", async () => {
    const metrics = createDaemonMetrics({ process: false });
    const clock = createVirtualClock(START_MS);
    const receivers = [{ name: "oncall", send: async () => ({ ok: true }) as const }];
    createNotifier({ receivers, clock, random: () => 0.5, log: createRecordingLog(), metrics });
    const text = await metrics.render("text");
    for (const outcome of ["sent", "failed", "dropped"]) {
      expect(text).toContain(`proxywarden_notifications_total{receiver="oncall",outcome="${outcome}"} 0\n`);
    }
  });
});

describe("a receiver that fails", () => {
  test("is tried again after 1 s, 2 s, 4 s and so on to a minute, and others wait for it no moment", async () => {
    const { clock, notifier, sendings, counts } = open({ oncall: () => down, alerts: () => acceptedAnswer });
    notifier.notify(notification());
    await clock.advance(20 * MINUTE);
    const waits = sendings.oncall!.map(({ at }, index) => (at - (sendings.oncall![index - 1]?.at ?? at)) / 1_000);
    expect(waits).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
    expect(waits).toHaveLength(ATTEMPTS_MAX);
    expect(sendings.alerts).toMatchObject([{ at: 0 }]);
    expect(await counts()).toEqual(["oncall failed 1", "alerts sent 1"]);
  });

  test("and recovers gets what waited, in order and in few sendings; it is logged once each way", async () => {
    const { clock, notifier, sendings, log, counts } = open({
      oncall: (sending) => (sending <= 3 ? down : acceptedAnswer),
    });
    for (let number = 0; number < 250; number++) notifier.notify(notification({ summary: String(number) }));
    await clock.advance(MINUTE);
    const summaries = sendings
      .oncall!.slice(3)
      .flatMap(({ notices: notifications }) => notifications.map(({ summary }) => Number(summary)));
    expect(summaries).toEqual(Array.from({ length: 250 }, (_, index) => index));
    expect(
      sendings
        .oncall!.slice(3)
        .every(({ notices: notifications }) => notifications.length <= NOTIFICATIONS_PER_REQUEST_MAX),
    ).toBe(true);
    expect(sendings.oncall!.length).toBeLessThanOrEqual(7);
    expect(log.lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      "warn: a receiver takes no notices",
      "info: a receiver takes notices again",
    ]);
    expect(await counts()).toEqual(["oncall sent 250"]);
  });

  test("and refuses what it is sent gets it once, and the next notices all the same", async () => {
    const { clock, notifier, summaries, counts } = open({
      oncall: (sending) => (sending === 1 ? refused : acceptedAnswer),
    });
    notifier.notify(notification({ summary: "odd" }));
    await clock.advance(1_000);
    notifier.notify(notification({ summary: "even" }));
    await clock.advance(MINUTE);
    expect(summaries("oncall")).toEqual([["odd"], ["even"]]);
    expect(await counts()).toEqual(["oncall sent 1", "oncall failed 1"]);
  });

  test("and rejects in spite of all is logged, and goes on being told", async () => {
    const clock = createVirtualClock(START_MS);
    const log = createRecordingLog();
    let sendings = 0;
    const receiver: Receiver = {
      name: "odd",
      async send() {
        sendings++;
        throw new Error("a defect");
      },
    };
    const notifier = createNotifier({ receivers: [receiver], clock, random: () => 0.5, log });
    notifier.notify(notification());
    await clock.advance(1_000);
    notifier.notify(notification());
    await clock.advance(1_000);
    expect(sendings).toBe(2);
    expect(log.lines[0]).toMatchObject({ level: "error", message: "a receiver broke" });
  });
});

test("a full queue drops its oldest notices, counts them, says so once, and notify never waits", async () => {
  const { clock, notifier, log, sendings, counts } = open({
    oncall: (sending) => (sending === 1 ? "hang" : acceptedAnswer),
  });
  notifier.notify(notification({ summary: "first" }));
  await clock.advance(1);
  for (let number = 0; number < QUEUED_NOTIFICATIONS_MAX + 5; number++)
    notifier.notify(notification({ summary: String(number) }));
  expect(sendings.oncall).toHaveLength(1);
  expect(await counts()).toEqual(["oncall dropped 5"]);
  const stopped = notifier.stop(MINUTE);
  await clock.advance(2 * MINUTE);
  await stopped;
  expect(log.lines.filter(({ message }) => message.includes("queue is full"))).toHaveLength(1);
});

describe("what lasts", () => {
  const summaries = ({ at, notices: notifications }: Sending) =>
    `${at / 1_000} ${notifications.map(({ endsAt }) => endsAt ?? "on")}`;

  test("is told again every minute where that is wanted, until its end is told; elsewhere once at each end", async () => {
    const { clock, notifier, sendings, counts } = open(
      { alerts: () => acceptedAnswer, oncall: () => acceptedAnswer },
      { alerts: MINUTE },
    );
    await clock.advance(30_000);
    notifier.notify(storm);
    notifier.notify(notification());
    await clock.advance(3 * MINUTE);
    notifier.notify({ ...storm, endsAt: 7 });
    await clock.advance(5 * MINUTE);
    expect(sendings.alerts!.map(summaries)).toEqual(["30 on,on", "60 on", "120 on", "180 on", "210 7"]);
    expect(sendings.oncall!.map(summaries)).toEqual(["30 on,on", "210 7"]);
    // Repetitions are no news.
    expect(await counts()).toEqual(["alerts sent 3", "oncall sent 3"]);
  });

  test("ends with what it began with, but for its summary", async () => {
    const { clock, notifier, sendings } = open({ alerts: () => acceptedAnswer });
    notifier.notify(storm);
    notifier.notify({ ...storm, severity: "info", region: "us-east", summary: "It is over", endsAt: 7 });
    await clock.advance(1_000);
    const end = sendings.alerts!.flatMap(({ notices: notifications }) => notifications).at(-1);
    expect(end).toEqual({ ...storm, summary: "It is over", endsAt: 7 });
  });

  test("and was told to one receiver alone is repeated to that one alone", async () => {
    const { clock, notifier, sendings } = open(
      { a: () => acceptedAnswer, b: () => acceptedAnswer },
      { a: MINUTE, b: MINUTE },
    );
    notifier.notify(storm, "a");
    await clock.advance(90_000);
    expect([sendings.a!.length, sendings.b!.length]).toEqual([2, 0]);
    expect(notifier.activeNotifications()).toEqual([]);
  });

  test("is taken up by the next notifier without being told anew where it isn't repeated", async () => {
    const first = open({ alerts: () => acceptedAnswer });
    first.notifier.notify(storm);
    first.notifier.notify(notification());
    const next = open({ alerts: () => acceptedAnswer, oncall: () => acceptedAnswer }, { alerts: MINUTE });
    next.notifier.resume(first.notifier.activeNotifications());
    await next.clock.advance(MINUTE);
    expect(next.sendings.alerts!.map(summaries)).toEqual(["60 on"]);
    expect(next.sendings.oncall).toEqual([]);
  });

  test("a repetition that fails is left to the next one", async () => {
    const { clock, notifier, sendings, counts } = open(
      { alerts: (sending) => (sending === 2 ? down : acceptedAnswer) },
      { alerts: MINUTE },
    );
    notifier.notify(storm);
    await clock.advance(2 * MINUTE);
    expect(sendings.alerts!.map(summaries)).toEqual(["0 on", "60 on", "120 on"]);
    expect(await counts()).toEqual(["alerts sent 1"]);
  });
});

describe("stop", () => {
  test("sends what waits, cutting short the wait for the next try, and each no more than once", async () => {
    const { clock, notifier, sendings, counts } = open({ oncall: (sending) => (sending <= 5 ? down : acceptedAnswer) });
    notifier.notify(notification());
    await clock.advance(15_500);
    notifier.notify(notification({ summary: "late" }));
    const stopped = notifier.stop(5_000);
    await clock.advance(0);
    await stopped;
    expect(sendings.oncall!.map(({ at }) => at / 1_000)).toEqual([0, 1, 3, 7, 15, 15.5, 15.5]);
    expect(await counts()).toEqual(["oncall sent 2"]);
    notifier.notify(notification());
    expect(await counts()).toEqual(["oncall sent 2", "oncall dropped 1"]);
  });

  test("waits no longer than it is given, and drops the rest", async () => {
    const { clock, notifier, counts } = open(
      { oncall: () => "hang", alerts: () => acceptedAnswer },
      { alerts: MINUTE },
    );
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
    expect(await counts()).toEqual(["oncall failed 1", "oncall dropped 3", "alerts sent 4"]);
    expect(clock.sleeperCount()).toBe(0);
  });

  test("is not held up by a receiver that heeds no signal", async () => {
    const clock = createVirtualClock(START_MS);
    const deaf: Receiver = { name: "deaf", send: () => new Promise(() => {}) };
    const notifier = createNotifier({ receivers: [deaf], clock, random: () => 0.5, log: createRecordingLog() });
    notifier.notify(notification());
    const stopped = notifier.stop(5_000);
    await clock.advance(5_000);
    await stopped;
  });

  test("does not resolve active notifications when it stops", async () => {
    const { clock, notifier, sendings } = open({ alerts: () => acceptedAnswer }, { alerts: MINUTE });
    notifier.notify(storm);
    await clock.advance(1_000);
    await notifier.stop(5_000);
    await clock.advance(10 * MINUTE);
    expect(sendings.alerts).toHaveLength(1);
  });
});
