import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { NotificationOutcome } from "../model/label-values.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { DeliveryResult, Notification, Receiver } from "../model/remediation/notification.ts";

/** Queue of notifications for one receiver, and the loop that sends them. */
export interface RetryQueue {
  /** Queues a notification and returns immediately; beyond {@link QUEUED_NOTIFICATIONS_MAX} the oldest one is dropped. */
  add(notification: Notification): void;
  /** Sends what is queued, one attempt each, until `cut` aborts; then the loop ends. */
  drain(cut: AbortSignal): Promise<void>;
}

/** Dependencies of a retry queue. */
export interface RetryQueueDeps {
  readonly receiver: Receiver;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Active notifications, for a receiver that wants them repeated. */
  readonly lasting: () => readonly Notification[];
  readonly count: (outcome: NotificationOutcome, notifications: number) => void;
}

/** Maximum length of the queue: enough for a storm, and small in memory. */
export const QUEUED_NOTIFICATIONS_MAX = 1_000;
/** Maximum number of notifications per request. */
export const NOTIFICATIONS_PER_REQUEST_MAX = 100;
/** Attempts per batch: about six minutes with the waits below. */
export const ATTEMPTS_MAX = 12;
/** Wait after the first failure, doubled up to the maximum, times a random factor of 0.5 to 1.5. */
const RETRY_MS: DurationMs = SECOND_MS;
const RETRY_MS_MAX: DurationMs = MINUTE_MS;

/** Creates a retry queue and starts its loop. */
export function createRetryQueue({ receiver, clock, random, log, lasting, count }: RetryQueueDeps): RetryQueue {
  const about = { receiver: receiver.name };
  const repeatMs = receiver.repeatMs ?? Number.POSITIVE_INFINITY;
  const queue: Notification[] = [];
  const overflow = new AbortController();
  /** Ends the waits between attempts. */
  const skipWaits = new AbortController();
  /** Ends the wait while the queue is empty. */
  let idle = new AbortController();
  let isDraining = false;
  let isFull = false;
  let isFailing = false;
  let repeatAt = clock.monotonic() + repeatMs;

  async function send(notifications: readonly Notification[]): Promise<DeliveryResult> {
    const result = await receiver.send(notifications, overflow.signal).catch((error: unknown) => {
      log.error({ ...about, err: error }, "a receiver broke");
      return { ok: false, error: String(error), isFinal: true } as const;
    });
    if (!result.ok && !isFailing) log.warn({ ...about, problem: result.error }, "a receiver takes no notices");
    if (result.ok && isFailing) log.info(about, "a receiver takes notices again");
    isFailing = !result.ok;
    return result;
  }

  async function deliver(batch: readonly Notification[]): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      const isLast = isDraining || attempts >= ATTEMPTS_MAX;
      const result = await send(batch);
      if (result.ok) return count("sent", batch.length);
      if (result.isFinal || isLast || overflow.signal.aborted) {
        log.error({ ...about, notifications: batch.length, attempts, problem: result.error }, "notifications given up");
        return count("failed", batch.length);
      }
      const wait = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (attempts - 1)) * (0.5 + random());
      await clock.sleep(wait, skipWaits.signal);
    }
  }

  /** Repeats the active notifications. A failure is neither retried nor counted: the next repetition follows. */
  async function repeat(): Promise<void> {
    repeatAt = clock.monotonic() + repeatMs;
    const notifications = lasting();
    for (let begin = 0; begin < notifications.length && !isDraining; begin += NOTIFICATIONS_PER_REQUEST_MAX) {
      const result = await send(notifications.slice(begin, begin + NOTIFICATIONS_PER_REQUEST_MAX));
      if (!result.ok) return;
    }
  }

  async function run(): Promise<void> {
    while (!overflow.signal.aborted) {
      if (!isDraining && clock.monotonic() >= repeatAt) await repeat();
      const batch = queue.splice(0, NOTIFICATIONS_PER_REQUEST_MAX);
      isFull = isFull && queue.length > 0;
      if (batch.length > 0) await deliver(batch);
      else if (isDraining) return;
      else {
        idle = new AbortController();
        await clock.sleep(Math.max(0, repeatAt - clock.monotonic()), idle.signal);
      }
    }
    if (queue.length > 0) log.error({ ...about, notifications: queue.length }, "notifications dropped at shutdown");
    count("dropped", queue.splice(0).length);
  }

  const running = run();
  return {
    add(notification) {
      if (isDraining) return count("dropped", 1);
      if (queue.length >= QUEUED_NOTIFICATIONS_MAX) {
        queue.shift();
        count("dropped", 1);
        if (!isFull)
          log.error(
            { ...about, notifications: QUEUED_NOTIFICATIONS_MAX },
            "a receiver's queue is full: its oldest notices go",
          );
        isFull = true;
      }
      queue.push(notification);
      idle.abort();
    },
    async drain(cut) {
      isDraining = true;
      const end = () => overflow.abort();
      cut.addEventListener("abort", end, { once: true });
      if (cut.aborted) end();
      skipWaits.abort();
      idle.abort();
      await running;
    },
  };
}
