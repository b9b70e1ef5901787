import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { NotificationOutcome } from "../model/label-values.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { DeliveryResult, Notification, Receiver } from "../model/remediation/notification.ts";

interface RetryQueueDeps {
  readonly receiver: Receiver;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Returns the active notifications to repeat, if the receiver wants repetitions. */
  readonly activeNotifications: () => readonly Notification[];
  readonly count: (outcome: NotificationOutcome, notifications: number) => void;
  /** Called whenever {@link RetryQueue.undelivered} has changed. */
  readonly onChange: () => void;
}

/** Maximum number of undelivered notifications, which suffices for a storm and takes little memory. */
export const QUEUED_NOTIFICATIONS_MAX = 1_000;
/** Maximum number of notifications per request. */
export const NOTIFICATIONS_PER_REQUEST_MAX = 100;
/** Maximum number of attempts per batch. With the waits below they take about an hour. */
export const ATTEMPTS_MAX = 65;
/** Wait after the first failure, doubled up to the maximum, times a random factor of 0.5 to 1.5. */
const RETRY_MS: DurationMs = SECOND_MS;
const RETRY_MS_MAX: DurationMs = MINUTE_MS;

/** Queue of notifications for one receiver, and the loop that sends them. */
export class RetryQueue {
  readonly #deps: RetryQueueDeps;
  readonly #fields: { readonly receiver: string };
  readonly #repeatMs: DurationMs;
  readonly #queue: Notification[] = [];
  /** Notifications that are being sent. */
  #batch: readonly Notification[] = [];
  /** Notifications whose last attempt failed during {@link drain}. */
  readonly #undelivered: Notification[] = [];
  /** Aborts requests and ends the loop. */
  readonly #cut = new AbortController();
  /** Aborts when {@link drain} begins, which ends the waits between attempts. */
  readonly #draining = new AbortController();
  /** Ends the wait while the queue is empty. */
  #idle = new AbortController();
  #isFull = false;
  #isFailing = false;
  #repeatAt: number;
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
   * Queues a notification and returns immediately. Beyond {@link QUEUED_NOTIFICATIONS_MAX} the oldest one that is not being
   * sent is dropped.
   */
  add(notification: Notification): void {
    const { count, log, onChange } = this.#deps;
    const total = this.#undelivered.length + this.#batch.length + this.#queue.length;
    if (total >= QUEUED_NOTIFICATIONS_MAX && this.#queue.length > 0) {
      this.#queue.shift();
      count("dropped", 1);
      if (!this.#isFull) {
        const fields = { ...this.#fields, notifications: QUEUED_NOTIFICATIONS_MAX };
        log.error(fields, "notification queue is full; the oldest notifications are dropped");
      }
      this.#isFull = true;
    }
    this.#queue.push(notification);
    this.#idle.abort();
    onChange();
  }

  /**
   * Returns the notifications that were neither delivered nor refused, oldest first. One that is being sent may have
   * arrived.
   */
  undelivered(): readonly Notification[] {
    return [...this.#undelivered, ...this.#batch, ...this.#queue];
  }

  /** Sends what is queued, with one attempt each. The loop then ends. */
  async drain(): Promise<void> {
    this.#draining.abort();
    this.#idle.abort();
    await this.#finished;
  }

  /** Ends the loop. What is not delivered stays in {@link undelivered}. */
  end(): void {
    this.#cut.abort();
  }

  get #isDraining(): boolean {
    return this.#draining.signal.aborted;
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    while (!this.#cut.signal.aborted) {
      if (!this.#isDraining && clock.monotonic() >= this.#repeatAt) await this.#repeat();
      this.#batch = this.#queue.splice(0, NOTIFICATIONS_PER_REQUEST_MAX);
      this.#isFull = this.#isFull && this.#queue.length > 0;
      if (this.#batch.length > 0) {
        await this.#deliver(this.#batch);
        if (this.#cut.signal.aborted) return;
        this.#batch = [];
        this.#deps.onChange();
      } else if (this.#isDraining) return;
      else {
        this.#idle = new AbortController();
        await clock.sleep(Math.max(0, this.#repeatAt - clock.monotonic()), this.#idle.signal);
      }
    }
  }

  async #deliver(batch: readonly Notification[]): Promise<void> {
    const { clock, count, log, random } = this.#deps;
    for (let attempts = 1; ; attempts++) {
      const isLast = this.#isDraining;
      const result = await this.#send(batch);
      if (this.#cut.signal.aborted) return;
      if (result.ok) return count("sent", batch.length);
      if (result.isFinal || attempts >= ATTEMPTS_MAX) {
        const fields = { ...this.#fields, notifications: batch.length, attempts, problem: result.error };
        log.error(fields, "notifications not delivered");
        return count("failed", batch.length);
      }
      if (isLast) {
        this.#batch = [];
        this.#undelivered.push(...batch);
        return;
      }
      const wait = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (attempts - 1)) * (0.5 + random());
      await clock.sleep(wait, this.#draining.signal);
    }
  }

  /**
   * Repeats the active notifications. A failure is neither retried nor counted, because the next repetition follows. If
   * the receiver refuses some, the rest is still sent.
   */
  async #repeat(): Promise<void> {
    this.#repeatAt = this.#deps.clock.monotonic() + this.#repeatMs;
    const notifications = this.#deps.activeNotifications();
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
    if (!result.ok && !this.#isFailing) {
      log.warn({ ...this.#fields, problem: result.error }, "receiver does not accept notifications");
    }
    if (result.ok && this.#isFailing) log.info(this.#fields, "receiver accepts notifications again");
    this.#isFailing = !result.ok;
    return result;
  }
}
