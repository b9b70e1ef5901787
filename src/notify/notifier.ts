import type { DurationMs } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import { NOTIFICATION_OUTCOMES, type NotificationOutcome } from "../model/label-values.ts";
import type { Clock, LazyFactStore, Log } from "../model/ports.ts";
import { isActive, type Notification, type Receiver } from "../model/remediation/notification.ts";
import { RETRIED_MS_MAX, RetryQueue, type UndeliveredNotification } from "./retry-queue.ts";

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

/** Sends notifications to receivers, each with a retry queue. Callers never wait for a receiver. */
export class Notifier {
  readonly #deps: NotifierDeps;
  /** Active notifications by key, oldest first. */
  readonly #active = new Map<string, Notification>();
  readonly #retryQueues: ReadonlyMap<string, RetryQueue>;
  #isStopped = false;

  /** Starts with what an earlier notifier did not deliver, and drops what is for a receiver that no longer exists. */
  constructor(deps: NotifierDeps) {
    this.#deps = deps;
    this.#retryQueues = new Map(deps.receivers.map((receiver) => [receiver.name, this.#startRetryQueue(receiver)]));
    this.#sendUndelivered();
  }

  /**
   * Queues a notification for all receivers, or an event for one, and returns immediately. An active notification is
   * repeated to receivers that want repetitions, until it is resolved. A failed delivery is retried for `retriedMs`.
   */
  notify(notification: Notification, receiver?: string, retriedMs = RETRIED_MS_MAX): void {
    const { summary, endsAt, key } = notification;
    const begun = this.#active.get(key);
    // A resolved notification must have the same labels as the one it resolves.
    const sent = begun === undefined ? notification : { ...begun, summary, endsAt };
    if (isActive(sent)) this.#setActive(sent);
    else this.#active.delete(key);
    const retryQueues = this.#retryQueues;
    if (receiver === undefined) for (const retryQueue of retryQueues.values()) retryQueue.add(sent, retriedMs);
    else if (retryQueues.has(receiver)) retryQueues.get(receiver)!.add(sent, retriedMs);
    else this.#deps.log.error({ receiver, key }, "notification for an unknown receiver");
  }

  /** Adopts notifications that an earlier notifier sent and that are still active. They are repeated. */
  resume(notifications: readonly Notification[]): void {
    for (const notification of notifications.filter(isActive)) this.#setActive(notification);
  }

  /** Active notifications, for the next notifier to resume. */
  activeNotifications(): readonly Notification[] {
    return [...this.#active.values()];
  }

  /**
   * Spends at most `graceMs` on sending what is queued, then stops. What was not delivered is journaled for the next
   * notifier. Active notifications are not resolved. The daemon resumes them, or receivers that expect repetitions let
   * them expire.
   */
  async stop(graceMs: DurationMs): Promise<void> {
    const { clock, metrics } = this.#deps;
    const retryQueues = [...this.#retryQueues.values()];
    const drained = new AbortController();
    const drain = Promise.all(retryQueues.map((retryQueue) => retryQueue.drain()));
    await Promise.race([drain, clock.sleep(graceMs, drained.signal)]);
    drained.abort();
    for (const retryQueue of retryQueues) retryQueue.end();
    this.#save();
    this.#isStopped = true;
    for (const receiver of this.#retryQueues.keys())
      metrics?.set("proxywarden_notifications_queued", { receiver }, Number.NaN);
  }

  #startRetryQueue(receiver: Receiver): RetryQueue {
    const { name } = receiver;
    const count = (outcome: NotificationOutcome, notifications: number) =>
      this.#deps.metrics?.inc("proxywarden_notifications_total", { receiver: name, outcome }, notifications);
    // Counters start at zero, so that increase() sees the first notification.
    for (const outcome of NOTIFICATION_OUTCOMES) count(outcome, 0);
    const activeNotifications = () => this.activeNotifications();
    return new RetryQueue({ ...this.#deps, receiver, count, activeNotifications, onChange: () => this.#saveLater() });
  }

  /** Saves once for all changes of the current turn, in one transaction with the events that they report. */
  #saveLater(): void {
    if (!this.#isStopped) this.#deps.facts?.writeLater(UNDELIVERED_FACT, () => this.#undeliveredText());
  }

  #save(): void {
    const { facts } = this.#deps;
    const text = this.#undeliveredText();
    if (text !== (facts?.read(UNDELIVERED_FACT) ?? "{}")) facts?.write(UNDELIVERED_FACT, text);
  }

  #undeliveredText(): string {
    const undelivered = [...this.#retryQueues].map(([name, retryQueue]) => [name, retryQueue.undelivered()] as const);
    for (const [receiver, { length }] of undelivered)
      this.#deps.metrics?.set("proxywarden_notifications_queued", { receiver }, length);
    return JSON.stringify(Object.fromEntries(undelivered.filter(([, { length }]) => length > 0)));
  }

  #sendUndelivered(): void {
    const { facts, log, metrics } = this.#deps;
    const undelivered = JSON.parse(facts?.read(UNDELIVERED_FACT) ?? "{}") as UndeliveredNotifications;
    for (const [receiver, notifications] of Object.entries(undelivered)) {
      if (this.#retryQueues.has(receiver)) {
        for (const { retriedMs, ...notification } of notifications) this.notify(notification, receiver, retriedMs);
        continue;
      }
      const { length } = notifications;
      log.error({ receiver, notifications: length }, "notifications dropped: their receiver no longer exists");
      metrics?.inc("proxywarden_notifications_total", { receiver, outcome: "dropped" }, length);
    }
    this.#save();
  }

  #setActive(notification: Notification): void {
    const active = this.#active;
    const oldest = active.keys().next();
    if (active.size >= ACTIVE_NOTIFICATIONS_MAX && !active.has(notification.key) && oldest.done === false) {
      this.#deps.log.error({ key: oldest.value }, "too many active notifications; the oldest is no longer repeated");
      active.delete(oldest.value);
    }
    active.set(notification.key, notification);
  }
}
