import type { DurationMs } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../model/ports.ts";
import { isActive, type Notification, type Receiver } from "../model/remediation/notification.ts";
import { createRetryQueue } from "./retry-queue.ts";

/** Sends notifications to receivers. Callers never wait for a receiver. */
export interface Notifier {
  /**
   * Queues a notification for one receiver, or for all, and returns immediately. An active notification is repeated to
   * receivers that want repetitions, until it is resolved.
   */
  notify(notification: Notification, receiver?: string): void;
  /** Adopts notifications that an earlier notifier sent and that are still active: they are repeated, not sent anew. */
  resume(notifications: readonly Notification[]): void;
  /** Active notifications that were sent to all receivers, for the next notifier to resume. */
  activeNotifications(): readonly Notification[];
  /**
   * Sends what is queued for at most `graceMs`, then stops. Active notifications are not resolved: the daemon resumes them,
   * or receivers that expect repetitions let them expire.
   */
  stop(graceMs: DurationMs): Promise<void>;
}

/** Dependencies of a notifier. */
export interface NotifierDeps {
  readonly receivers: readonly Receiver[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics?: Pick<DaemonMetrics, "inc">;
}

/** Maximum number of active notifications; beyond it the oldest is no longer repeated. */
export const ACTIVE_NOTIFICATIONS_MAX = 10_000;

/** Creates a notifier with a retry queue per receiver, and starts it. */
export function createNotifier({ receivers, clock, random, log, metrics }: NotifierDeps): Notifier {
  /** By key, oldest first; `receiver`: the only one it was sent to. */
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
      log.error({ key: oldest.value }, "too many active notifications; the oldest is no longer repeated");
      active.delete(oldest.value);
    }
    active.set(notification.key, { notice: notification, receiver });
  }

  return {
    notify(notification, receiver) {
      const begun = active.get(notification.key)?.notice;
      // A resolved notification must have the same labels as the one it resolves.
      const notified =
        begun === undefined ? notification : { ...begun, summary: notification.summary, endsAt: notification.endsAt };
      if (isActive(notified)) keepActive(notified, receiver);
      else active.delete(notified.key);
      if (receiver === undefined) for (const retryQueue of retryQueues.values()) retryQueue.add(notified);
      else if (retryQueues.has(receiver)) retryQueues.get(receiver)!.add(notified);
      else log.error({ receiver, key: notification.key }, "notification for an unknown receiver");
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
