import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { NotificationOutcome } from "../model/label-values.ts";
import type { Clock, Log } from "../model/ports.ts";
import { type DeliveryResult, isActive, type Notification, type Receiver } from "../model/remediation/notification.ts";
import type { MonotonicMs } from "../model/time.ts";
import { FailureState } from "../platform/log.ts";

interface RetryQueueDeps {
  readonly receiver: Receiver;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Returns the active notifications, which are repeated if the receiver wants repetitions. */
  readonly activeNotifications: () => readonly Notification[];
  readonly count: (outcome: NotificationOutcome, notifications: number) => void;
  /** Called whenever {@link RetryQueue.undelivered} has changed. */
  readonly onChange: () => void;
}

/** Maximum number of undelivered notifications, which suffices for a storm and takes little memory. */
export const QUEUED_NOTIFICATIONS_MAX = 1_000;
/** Maximum number of notifications per request. */
export const NOTIFICATIONS_PER_REQUEST_MAX = 100;
/** How long a notification is retried: longer than most outages, and not so long that it is no longer news. */
export const RETRIED_MS_MAX: DurationMs = HOUR_MS;
/** Wait after the first failure, doubled up to the maximum, times a random factor of 0.5 to 1.5. */
const RETRY_MS: DurationMs = SECOND_MS;
const RETRY_MS_MAX: DurationMs = MINUTE_MS;
/** Duration of an alert about an event, which is longer than any common group_interval. */
export const EVENT_ALERT_MS: DurationMs = HOUR_MS;
/** How long the end of a condition is repeated, as in Prometheus. */
const RESOLVED_REPEAT_MS: DurationMs = 15 * MINUTE_MS;

/**
 * A notification, and how long it is still retried. The time is absent if an earlier version stored the notification.
 */
export type UndeliveredNotification = Notification & { readonly retriedMs?: DurationMs };

interface QueuedNotification {
  readonly notification: Notification;
  readonly retriedUntil: MonotonicMs;
}

const subjectOf = ({ notification: { episode, key } }: QueuedNotification): string => episode ?? key;

/**
 * Queue of notifications for one receiver, and the loop that sends them, in order and in batches. After a failure,
 * single notifications are tried in turn until the receiver accepts one, so a notification that the receiver refuses or
 * can't process delays the others only by seconds. If the receiver accepts the first one that is tried after a failed
 * batch, the cause is another one in that batch, and the whole batch is sent one by one. Notifications about the same
 * episode or condition stay in order.
 */
export class RetryQueue {
  readonly #deps: RetryQueueDeps;
  readonly #fields: { readonly receiver: string };
  readonly #repeatMs: DurationMs;
  #queue: readonly QueuedNotification[] = [];
  /** Those in the queue that are being sent. */
  #batch: readonly QueuedNotification[] = [];
  /** Notifications that were delivered and are not active, but are still repeated, by key. */
  readonly #repeated = new Map<string, { readonly notification: Notification; readonly until: MonotonicMs }>();
  /** Aborts requests and ends the loop. */
  readonly #cut = new AbortController();
  #isDraining = false;
  /** Ends the wait for a notification, a retry or a repetition. */
  #wait = new AbortController();
  #isFull = false;
  readonly #attempts = new FailureState();
  /** Consecutive failed attempts: 0 after a notification was accepted or refused, at most 1 after another was added. */
  #failures = 0;
  /** Number of notifications to send one by one, because the receiver did not accept their batch. */
  #singles = 0;
  /** Index, modulo the length of the queue, of the notification to try after a failure. */
  #next = 0;
  #retryAt: MonotonicMs = 0;
  #repeatAt: MonotonicMs;
  readonly #finished: Promise<void>;

  /** Starts the loop. */
  constructor(deps: RetryQueueDeps) {
    this.#deps = deps;
    this.#fields = { receiver: deps.receiver.name };
    this.#repeatMs = deps.receiver.repeatMs ?? Number.POSITIVE_INFINITY;
    this.#repeatAt = deps.clock.monotonic() + this.#repeatMs;
    this.#finished = this.#run();
  }

  /**
   * Queues a notification, which is retried for `retriedMs`, and returns immediately. Beyond
   * {@link QUEUED_NOTIFICATIONS_MAX} the oldest one that is not being sent is dropped.
   */
  add(notification: Notification, retriedMs: DurationMs): void {
    const { clock, count, log, onChange } = this.#deps;
    if (this.#queue.length >= QUEUED_NOTIFICATIONS_MAX) {
      const oldest = this.#queue.find((queued) => !this.#batch.includes(queued));
      this.#queue = this.#queue.filter((queued) => queued !== oldest);
      count("dropped", 1);
      if (!this.#isFull) {
        const fields = { ...this.#fields, notifications: QUEUED_NOTIFICATIONS_MAX };
        log.error(fields, "notification queue is full; the oldest notifications are dropped");
      }
      this.#isFull = true;
    }
    const now = clock.monotonic();
    this.#queue = [...this.#queue, { notification, retriedUntil: now + retriedMs }];
    this.#failures = Math.min(1, this.#failures);
    this.#retryAt = now;
    this.#wait.abort();
    onChange();
  }

  /**
   * Returns the notifications that were neither delivered nor refused, oldest first, and for how long each is still
   * retried. One that is being sent may have arrived.
   */
  undelivered(): readonly UndeliveredNotification[] {
    const now = this.#deps.clock.monotonic();
    return this.#queue.map(({ notification, retriedUntil }) => ({
      ...notification,
      retriedMs: Math.max(0, retriedUntil - now),
    }));
  }

  /** Sends what is queued, with one attempt each. The loop then ends. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#wait.abort();
    await this.#finished;
  }

  /** Ends the loop. What is not delivered stays in {@link undelivered}. */
  end(): void {
    this.#cut.abort();
    this.#wait.abort();
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    while (!this.#cut.signal.aborted && !this.#isDraining) {
      // Created first, so that a call during the repetition ends the wait.
      this.#wait = new AbortController();
      if (clock.monotonic() >= this.#repeatAt) await this.#repeat();
      const sendAt = this.#queue.length === 0 ? Number.POSITIVE_INFINITY : this.#retryAt;
      if (clock.monotonic() >= sendAt) await this.#deliver(this.#nextBatch());
      else await clock.sleep(Math.min(this.#repeatAt, sendAt) - clock.monotonic(), this.#wait.signal);
    }
    const queue = this.#queue;
    for (let begin = 0; begin < queue.length && !this.#cut.signal.aborted; begin += NOTIFICATIONS_PER_REQUEST_MAX)
      await this.#deliver(queue.slice(begin, begin + NOTIFICATIONS_PER_REQUEST_MAX));
  }

  #sendsBatches(): boolean {
    return this.#failures === 0 && this.#singles === 0;
  }

  #nextBatch(): readonly QueuedNotification[] {
    const queue = this.#queue;
    if (this.#sendsBatches()) return queue.slice(0, NOTIFICATIONS_PER_REQUEST_MAX);
    const subject = subjectOf(queue[this.#next % queue.length]!);
    return [queue.find((queued) => subjectOf(queued) === subject)!];
  }

  /** Makes one attempt to deliver a batch of the queue. */
  async #deliver(batch: readonly QueuedNotification[]): Promise<void> {
    const { clock, random, onChange } = this.#deps;
    this.#batch = batch;
    const result = await this.#send(batch.map(({ notification }) => notification));
    if (this.#cut.signal.aborted) return;
    this.#batch = [];
    // A receiver may refuse a batch because of one notification, so only a single one is refused for good.
    if (result.ok || (result.isFinal && batch.length === 1)) {
      this.#failures = 0;
      this.#singles = Math.max(0, this.#singles - batch.length);
      this.#remove(batch, result);
      return;
    }
    this.#singles = batch.length;
    const now = clock.monotonic();
    this.#retryAt = now + Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** this.#failures) * (0.5 + random());
    if (this.#failures > 0) this.#next++;
    this.#failures++;
    this.#remove(
      this.#queue.filter(({ retriedUntil }) => retriedUntil <= now),
      result,
    );
    // The remaining times are stored, so that a kill extends them at most by the time between two attempts.
    onChange();
  }

  /** Removes notifications that were delivered, refused, or retried for too long. */
  #remove(ended: readonly QueuedNotification[], result: DeliveryResult): void {
    if (ended.length === 0) return;
    const { count, log, onChange } = this.#deps;
    count(result.ok ? "sent" : "failed", ended.length);
    if (result.ok) for (const { notification } of ended) this.#repeatLater(notification);
    else {
      const fields = { ...this.#fields, notifications: ended.length, problem: result.error };
      log.error(fields, "notifications not delivered");
    }
    this.#queue = this.#queue.filter((queued) => !ended.includes(queued));
    this.#isFull &&= this.#queue.length > 0;
    onChange();
  }

  /**
   * Repeats an event until its alert ends, and the end of a condition for a while: Alertmanager forgets both if it
   * restarts.
   */
  #repeatLater(delivered: Notification): void {
    if (!Number.isFinite(this.#repeatMs) || isActive(delivered)) return;
    const { clock } = this.#deps;
    const notification = { ...delivered, endsAt: delivered.endsAt ?? clock.now() + EVENT_ALERT_MS };
    const repeatedMs = delivered.endsAt === null ? EVENT_ALERT_MS : RESOLVED_REPEAT_MS;
    this.#repeated.set(delivered.key, { notification, until: clock.monotonic() + repeatedMs });
    if (this.#repeated.size > QUEUED_NOTIFICATIONS_MAX) this.#repeated.delete(this.#repeated.keys().next().value!);
  }

  /**
   * Repeats notifications. A failure is neither retried nor counted, because the next repetition follows. If the
   * receiver refuses some, the rest is still sent.
   */
  async #repeat(): Promise<void> {
    const now = this.#deps.clock.monotonic();
    this.#repeatAt = now + this.#repeatMs;
    const active = this.#deps.activeNotifications();
    for (const { key } of active) this.#repeated.delete(key);
    for (const [key, { until }] of this.#repeated) if (until <= now) this.#repeated.delete(key);
    const notifications = [...active, ...[...this.#repeated.values()].map(({ notification }) => notification)];
    for (let begin = 0; begin < notifications.length && !this.#isDraining; begin += NOTIFICATIONS_PER_REQUEST_MAX) {
      const result = await this.#send(notifications.slice(begin, begin + NOTIFICATIONS_PER_REQUEST_MAX));
      if (!result.ok && !result.isFinal) return;
    }
  }

  async #send(notifications: readonly Notification[]): Promise<DeliveryResult> {
    const { receiver, log } = this.#deps;
    const result = await receiver.send(notifications, this.#cut.signal).catch((error: unknown) => {
      log.error({ ...this.#fields, err: error }, "receiver failed unexpectedly");
      return { ok: false, error: String(error), isFinal: true } as const;
    });
    if (this.#cut.signal.aborted) return result;
    if (!result.ok)
      this.#attempts.failed(log, { ...this.#fields, problem: result.error }, "receiver does not accept notifications");
    // While notifications are sent one by one, the receiver may accept only some of them.
    else if (this.#sendsBatches() || this.#queue.length <= 1)
      this.#attempts.succeeded(log, this.#fields, "receiver accepts notifications again");
    return result;
  }
}
