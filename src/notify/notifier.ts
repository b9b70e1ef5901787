import type { DurationMs } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import { NOTIFICATION_OUTCOMES, type NotificationOutcome } from "../model/label-values.ts";
import type { Clock, LazyFactStore, Log } from "../model/ports.ts";
import { isActive, type Notification, type Receiver } from "../model/remediation/notification.ts";
import { RETRIED_MS_MAX, RetryQueue, type UndeliveredNotification } from "./retry-queue.ts";

/** Sends notifications to receivers. Callers never wait for a receiver. */
export type Notifier = ReturnType<typeof createNotifier>;

/**
 * Key of the fact that holds the notifications that were neither delivered nor refused, oldest first, by the name of
 * their receiver. It lets them survive reloads, restarts and changes of leadership.
 */
const UNDELIVERED_FACT = "notifications.undelivered";
type UndeliveredNotifications = Readonly<Record<string, readonly UndeliveredNotification[]>>;

interface NotifierDeps {
  readonly receivers: readonly Receiver[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics?: Pick<DaemonMetrics, "inc" | "set"> | undefined;
  /** Where undelivered notifications are journaled. Absent if they are not. */
  readonly facts?: LazyFactStore;
}

/** Maximum number of active notifications. Beyond it the oldest is no longer repeated. */
const ACTIVE_NOTIFICATIONS_MAX = 10_000;

/**
 * Creates a notifier with a retry queue per receiver, and starts it. It first sends what an earlier one did not
 * deliver, and drops what is for a receiver that no longer exists.
 */
export function createNotifier({ receivers, clock, random, log, metrics, facts }: NotifierDeps) {
  /** Active notifications by key, oldest first. */
  const active = new Map<string, Notification>();
  const activeNotifications = () => [...active.values()];
  let isStopped = false;
  const retryQueues = new Map(receivers.map((receiver) => [receiver.name, startRetryQueue(receiver)]));

  function startRetryQueue(receiver: Receiver): RetryQueue {
    const { name } = receiver;
    const count = (outcome: NotificationOutcome, notifications: number) =>
      metrics?.inc("proxywarden_notifications_total", { receiver: name, outcome }, notifications);
    // Counters start at zero, so that increase() sees the first notification.
    for (const outcome of NOTIFICATION_OUTCOMES) count(outcome, 0);
    return new RetryQueue({ receiver, clock, random, log, count, activeNotifications, onChange: saveLater });
  }

  /** Saves once for all changes of the current turn, in one transaction with the events that they report. */
  function saveLater(): void {
    if (!isStopped) facts?.writeLater(UNDELIVERED_FACT, undeliveredText);
  }

  function save(): void {
    const text = undeliveredText();
    if (text !== (facts?.read(UNDELIVERED_FACT) ?? "{}")) facts?.write(UNDELIVERED_FACT, text);
  }

  function undeliveredText(): string {
    const undelivered = [...retryQueues].map(([name, retryQueue]) => [name, retryQueue.undelivered()] as const);
    for (const [receiver, { length }] of undelivered)
      metrics?.set("proxywarden_notifications_queued", { receiver }, length);
    return JSON.stringify(Object.fromEntries(undelivered.filter(([, { length }]) => length > 0)));
  }

  function sendUndelivered(): void {
    const undelivered = JSON.parse(facts?.read(UNDELIVERED_FACT) ?? "{}") as UndeliveredNotifications;
    for (const [receiver, notifications] of Object.entries(undelivered)) {
      if (retryQueues.has(receiver)) {
        for (const { retriedMs, ...notification } of notifications) notify(notification, receiver, retriedMs);
        continue;
      }
      const { length } = notifications;
      log.error({ receiver, notifications: length }, "notifications dropped: their receiver no longer exists");
      metrics?.inc("proxywarden_notifications_total", { receiver, outcome: "dropped" }, length);
    }
    save();
  }

  function setActive(notification: Notification): void {
    const oldest = active.keys().next();
    if (active.size >= ACTIVE_NOTIFICATIONS_MAX && !active.has(notification.key) && oldest.done === false) {
      log.error({ key: oldest.value }, "too many active notifications; the oldest is no longer repeated");
      active.delete(oldest.value);
    }
    active.set(notification.key, notification);
  }

  /**
   * Queues a notification for all receivers, or an event for one, and returns immediately. An active notification is
   * repeated to receivers that want repetitions, until it is resolved. A failed delivery is retried for `retriedMs`.
   */
  function notify(notification: Notification, receiver?: string, retriedMs = RETRIED_MS_MAX): void {
    const { summary, endsAt, key } = notification;
    const begun = active.get(key);
    // A resolved notification must have the same labels as the one it resolves.
    const sent = begun === undefined ? notification : { ...begun, summary, endsAt };
    if (isActive(sent)) setActive(sent);
    else active.delete(key);
    if (receiver === undefined) for (const retryQueue of retryQueues.values()) retryQueue.add(sent, retriedMs);
    else if (retryQueues.has(receiver)) retryQueues.get(receiver)!.add(sent, retriedMs);
    else log.error({ receiver, key }, "notification for an unknown receiver");
  }

  sendUndelivered();
  return {
    notify,
    /** Adopts notifications that an earlier notifier sent and that are still active. They are repeated. */
    resume(notifications: readonly Notification[]): void {
      for (const notification of notifications.filter(isActive)) setActive(notification);
    },
    /** Active notifications, for the next notifier to resume. */
    activeNotifications,
    /**
     * Spends at most `graceMs` on sending what is queued, then stops. What was not delivered is journaled for the next
     * notifier. Active notifications are not resolved. The daemon resumes them, or receivers that expect repetitions
     * let them expire.
     */
    async stop(graceMs: DurationMs): Promise<void> {
      const drained = new AbortController();
      const drain = Promise.all([...retryQueues.values()].map((retryQueue) => retryQueue.drain()));
      await Promise.race([drain, clock.sleep(graceMs, drained.signal)]);
      drained.abort();
      for (const retryQueue of retryQueues.values()) retryQueue.end();
      save();
      isStopped = true;
      for (const { name } of receivers)
        metrics?.set("proxywarden_notifications_queued", { receiver: name }, Number.NaN);
    },
  };
}
