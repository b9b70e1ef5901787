import type { DurationMs } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../model/ports.ts";
import { isActive, type Notification, type Receiver } from "../model/remediation/notification.ts";
import { createRetryQueue } from "./retry-queue.ts";

/** Tells people. Whoever calls never waits for a receiver. */
export interface Notifier {
  /**
   * Queues a notice for one receiver by its name, or for all of them, and returns at once. What lasts is told again to
   * receivers that want it so, until its end is told.
   */
  notify(notification: Notification, receiver?: string): void;
  /** Takes up what lasts since before this notifier: it is told again, to receivers that want it so, and not anew. */
  resume(notifications: readonly Notification[]): void;
  /** What was told to all receivers and lasts: what the next notifier resumes. */
  activeNotifications(): readonly Notification[];
  /**
   * Sends what waits, for at most so long, and no more after that. What lasts is not told to be over: the daemon comes
   * back, or the receivers that want it told again notice.
   */
  stop(graceMs: DurationMs): Promise<void>;
}

/** What a notifier stands on. */
export interface NotifierDeps {
  readonly receivers: readonly Receiver[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics?: Pick<DaemonMetrics, "inc">;
}

/** Things that last and are told again; over it the oldest is told no more, and looks over where that matters. */
export const ACTIVE_NOTIFICATIONS_MAX = 10_000;

/** A notifier with an outbox for each receiver, at work from now on. */
export function createNotifier({ receivers, clock, random, log, metrics }: NotifierDeps): Notifier {
  /** By key, oldest first; `receiver`: told to that one alone. */
  const active = new Map<string, { readonly notice: Notification; readonly receiver: string | undefined }>();
  const retryQueues = new Map(
    receivers.map((receiver) => {
      const { name } = receiver;
      const count = (outcome: "sent" | "failed" | "dropped", notifications: number) =>
        metrics?.inc("proxywarden_notifications_total", { receiver: name, outcome }, notifications);
      // From zero, so that the first increase is an increase.
      for (const outcome of ["sent", "failed", "dropped"] as const) count(outcome, 0);
      const sameKey = () =>
        [...active.values()]
          .filter((each) => (each.receiver ?? name) === name)
          .map(({ notice: notification }) => notification);
      return [name, createRetryQueue({ receiver, clock, random, log, count, lasting: sameKey })] as const;
    }),
  );

  function keepActive(notification: Notification, receiver: string | undefined): void {
    const oldest = active.keys().next();
    if (active.size >= ACTIVE_NOTIFICATIONS_MAX && !active.has(notification.key) && oldest.done === false) {
      log.error({ key: oldest.value }, "too much lasts at once: the oldest is told no more");
      active.delete(oldest.value);
    }
    active.set(notification.key, { notice: notification, receiver });
  }

  return {
    notify(notification, receiver) {
      const begun = active.get(notification.key)?.notice;
      // What an end is about must be as it was at the beginning, to the letter, or nobody knows what is over.
      const notified =
        begun === undefined ? notification : { ...begun, summary: notification.summary, endsAt: notification.endsAt };
      if (isActive(notified)) keepActive(notified, receiver);
      else active.delete(notified.key);
      if (receiver === undefined) for (const retryQueue of retryQueues.values()) retryQueue.add(notified);
      else if (retryQueues.has(receiver)) retryQueues.get(receiver)!.add(notified);
      else log.error({ receiver, key: notification.key }, "a notice is for a receiver that there is not");
    },
    resume(notifications) {
      for (const notification of notifications.filter(isActive)) keepActive(notification, undefined);
    },
    activeNotifications: () =>
      [...active.values()].flatMap(({ notice: notification, receiver }) =>
        receiver === undefined ? [notification] : [],
      ),
    async stop(graceMs) {
      const aborted = new AbortController();
      const done = new AbortController();
      const drained = Promise.all([...retryQueues.values()].map((retryQueue) => retryQueue.drain(aborted.signal)));
      await Promise.race([drained, clock.sleep(graceMs, done.signal)]);
      done.abort();
      aborted.abort();
    },
  };
}
