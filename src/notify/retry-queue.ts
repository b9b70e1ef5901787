import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { NotificationOutcome } from "../metrics/label-values.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { DeliveryResult, Notification, Receiver } from "../model/remediation/notification.ts";

/** What waits for one receiver, and the loop that sends it. */
export interface RetryQueue {
  /** Queues a notice; over {@link QUEUED_NOTIFICATIONS_MAX} the oldest one is dropped. Returns at once. */
  add(notification: Notification): void;
  /** Sends what waits, each once more at the most, for as long as `cut` is not aborted; then the loop is over. */
  drain(cut: AbortSignal): Promise<void>;
}

/** What an outbox stands on. */
export interface RetryQueueDeps {
  readonly receiver: Receiver;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** What lasts now, for a receiver that wants it told again and again. */
  readonly lasting: () => readonly Notification[];
  readonly count: (outcome: NotificationOutcome, notifications: number) => void;
}

/** Notices that wait for one receiver: a storm's worth, and still no burden. */
export const QUEUED_NOTIFICATIONS_MAX = 1_000;
/** Notices in one sending. */
export const NOTIFICATIONS_PER_REQUEST_MAX = 100;
/** Sendings of one batch, after which it is given up: some six minutes, by the waits below. */
export const ATTEMPTS_MAX = 12;
/** The wait after the first failure; each further one is twice as long, up to the most. Spread over half to one and a half. */
const RETRY_MS: DurationMs = SECOND_MS;
const RETRY_MS_MAX: DurationMs = MINUTE_MS;

/** An outbox that is at work from now on. */
export function createRetryQueue({ receiver, clock, random, log, lasting, count }: RetryQueueDeps): RetryQueue {
  const about = { receiver: receiver.name };
  const repeatMs = receiver.repeatMs ?? Number.POSITIVE_INFINITY;
  const queue: Notification[] = [];
  const overflow = new AbortController();
  /** Ends the waits between two tries. */
  const skipWaits = new AbortController();
  /** Ends the nap in which there is nothing to do. */
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
        log.error({ ...about, notifications: batch.length, attempts, problem: result.error }, "notices are given up");
        return count("failed", batch.length);
      }
      const wait = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (attempts - 1)) * (0.5 + random());
      await clock.sleep(wait, skipWaits.signal);
    }
  }

  /** What fails here is told again with the next repetition, or its end is: it is neither tried again nor counted. */
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
    if (queue.length > 0)
      log.error({ ...about, notifications: queue.length }, "notices are dropped: there is no time left");
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
