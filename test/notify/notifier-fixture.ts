import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { LazyFactStore } from "../../src/model/ports.ts";
import type { DeliveryResult, Notification, Receiver } from "../../src/model/remediation/notification.ts";
import { Notifier } from "../../src/notify/notifier.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createRecordingLog, START_MS } from "../harness/daemon/virtual-daemon.ts";

/** Returns a notification about a step, with the changes of the test. */
export const notification = (parts: Partial<Notification> = {}): Notification => ({
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
export const storm = notification({
  kind: "storm",
  key: "storm",
  node: null,
  episode: null,
  summary: "40% are unhealthy",
});
export type Answer = DeliveryResult | "hang";
export const accepted: Answer = { ok: true };
export const down: Answer = { ok: false, error: "connect ECONNREFUSED", isFinal: false };
export const refused: Answer = { ok: false, error: "it answered 400", isFinal: true };

export type Sending = Readonly<{ at: number; notifications: readonly Notification[] }>;

/** Creates a store of facts in memory. */
export function createFacts(): LazyFactStore {
  const facts = new Map<string, string>();
  return {
    read: (key) => facts.get(key) ?? null,
    write: (key, value) => void facts.set(key, value),
    writeLater: (key, compute) => queueMicrotask(() => facts.set(key, compute())),
  };
}

/** Starts a notifier on virtual time. `answers` gives the receivers, and their answers to requests. */
export function start(
  answers: Record<string, (sending: number, notifications: readonly Notification[]) => Answer>,
  repeats: Record<string, number> = {},
  facts = createFacts(),
) {
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
        ownSendings.push({ at: clock.monotonic(), notifications });
        const given = answer(ownSendings.length, notifications);
        if (given !== "hang") return given;
        await clock.sleep(Number.POSITIVE_INFINITY, signal);
        return { ok: false, error: "given up", isFinal: false };
      },
    };
  });
  const notifier = new Notifier({ receivers, clock, random: () => 0.5, log, metrics, facts });
  const counts = async () =>
    (await metrics.render("text"))
      .split("\n")
      .filter((line) => line.startsWith("proxywarden_notifications_total{") && !line.endsWith(" 0"))
      .map((line) => line.replace(/^\S+?\{receiver="(.+)",outcome="(.+)"\} (\d+)$/, "$1 $2 $3"));
  const summaries = (name: string) =>
    sendings[name]!.map(({ notifications }) => notifications.map(({ summary }) => summary));
  const queued = async () =>
    [...(await metrics.render("text")).matchAll(/^proxywarden_notifications_queued\{receiver="(.+)"\} (\d+)$/gm)].map(
      ([, receiver, count]) => `${receiver} ${count}`,
    );
  return { clock, log, notifier, sendings, counts, queued, summaries };
}
