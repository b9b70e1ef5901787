import type { DurationMs } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import { NOTIFICATION_OUTCOMES, type NotificationOutcome } from "../model/label-values.ts";
import type { Clock, Log } from "../model/ports.ts";
import { isActive, type Notification, type Receiver } from "../model/remediation/notification.ts";
import { RetryQueue } from "./retry-queue.ts";

/** Sends notifications to receivers. Callers never wait for a receiver. */
export type Notifier = ReturnType<typeof createNotifier>;

/** Notifications that were neither delivered nor refused, oldest first, by the name of their receiver. */
export type UndeliveredNotifications = ReadonlyMap<string, readonly Notification[]>;

interface NotifierDeps {
  readonly receivers: readonly Receiver[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics?: Pick<DaemonMetrics, "inc"> | undefined;
}

/** Maximum number of active notifications. Beyond it the oldest is no longer repeated. */
const ACTIVE_NOTIFICATIONS_MAX = 10_000;

/** Counts and logs notifications that will not be sent. `message` says why. */
export function dropNotifications(
  undelivered: UndeliveredNotifications,
  message: string,
  { log, metrics }: Pick<NotifierDeps, "log" | "metrics">,
): void {
  for (const [receiver, { length }] of undelivered) {
    log.error({ receiver, notifications: length }, message);
    metrics?.inc("proxywarden_notifications_total", { receiver, outcome: "dropped" }, length);
  }
}

/** Creates a notifier with a retry queue per receiver, and starts it. */
export function createNotifier({ receivers, clock, random, log, metrics }: NotifierDeps) {
  /** Active notifications by key, oldest first. */
  const active = new Map<string, Notification>();
  const activeNotifications = () => [...active.values()];
  const retryQueues = new Map(receivers.map((receiver) => [receiver.name, startRetryQueue(receiver)]));

  function startRetryQueue(receiver: Receiver): RetryQueue {
    const { name } = receiver;
    const count = (outcome: NotificationOutcome, notifications: number) =>
      metrics?.inc("proxywarden_notifications_total", { receiver: name, outcome }, notifications);
    // Counters start at zero, so that increase() sees the first notification.
    for (const outcome of NOTIFICATION_OUTCOMES) count(outcome, 0);
    return new RetryQueue({ receiver, clock, random, log, count, activeNotifications });
  }

  function setActive(notification: Notification): void {
    const oldest = active.keys().next();
    if (active.size >= ACTIVE_NOTIFICATIONS_MAX && !active.has(notification.key) && oldest.done === false) {
      log.error({ key: oldest.value }, "too many active notifications; the oldest is no longer repeated");
      active.delete(oldest.value);
    }
    active.set(notification.key, notification);
  }

  return {
    /**
     * Queues a notification for all receivers, or an event for one, and returns immediately. An active notification is
     * repeated to receivers that want repetitions, until it is resolved.
     */
    notify(notification: Notification, receiver?: string): void {
      const { summary, endsAt, key } = notification;
      const begun = active.get(key);
      // A resolved notification must have the same labels as the one it resolves.
      const sent = begun === undefined ? notification : { ...begun, summary, endsAt };
      if (isActive(sent)) setActive(sent);
      else active.delete(key);
      if (receiver === undefined) for (const retryQueue of retryQueues.values()) retryQueue.add(sent);
      else if (retryQueues.has(receiver)) retryQueues.get(receiver)!.add(sent);
      else log.error({ receiver, key }, "notification for an unknown receiver");
    },
    /**
     * Adopts notifications that an earlier notifier sent and that are still active. They are repeated, not sent as new
     * ones. Those that it did not deliver are sent. If their receiver no longer exists, they are dropped.
     */
    resume(notifications: readonly Notification[], undelivered: UndeliveredNotifications = new Map()): void {
      for (const notification of notifications.filter(isActive)) setActive(notification);
      const unknown = new Map(undelivered);
      for (const [name, retryQueue] of retryQueues) {
        for (const notification of undelivered.get(name) ?? []) retryQueue.add(notification);
        unknown.delete(name);
      }
      dropNotifications(unknown, "notifications dropped: their receiver no longer exists", { log, metrics });
    },
    /** Active notifications, for the next notifier to resume. */
    activeNotifications,
    /**
     * Spends at most `graceMs` on sending what is queued, then stops. Returns what was not delivered. Active
     * notifications are not resolved. The daemon resumes them, or receivers that expect repetitions let them expire.
     */
    async stop(graceMs: DurationMs): Promise<UndeliveredNotifications> {
      const drained = new AbortController();
      const drain = Promise.all([...retryQueues.values()].map((retryQueue) => retryQueue.drain()));
      await Promise.race([drain, clock.sleep(graceMs, drained.signal)]);
      drained.abort();
      const undelivered = [...retryQueues].map(([name, retryQueue]) => [name, retryQueue.end()] as const);
      return new Map(undelivered.filter(([, notifications]) => notifications.length > 0));
    },
  };
}
