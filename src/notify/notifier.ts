import type { DurationMs } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { WardenMetrics } from "../metrics/daemon-metrics.ts";
import { isLasting, type Notice, type Receiver } from "../model/remediation/notification.ts";
import type { Clock, Log } from "../model/ports.ts";
import { createOutbox } from "./retry-queue.ts";

/** Tells people. Whoever calls never waits for a receiver. */
export interface Notifier {
  /**
   * Queues a notice for one receiver by its name, or for all of them, and returns at once. What lasts is told again to
   * receivers that want it so, until its end is told.
   */
  notify(notice: Notice, receiver?: string): void;
  /** Takes up what lasts since before this notifier: it is told again, to receivers that want it so, and not anew. */
  resume(notices: readonly Notice[]): void;
  /** What was told to all receivers and lasts: what the next notifier resumes. */
  lasting(): readonly Notice[];
  /**
   * Sends what waits, for at most so long, and no more after that. What lasts is not told to be over: the daemon comes
   * back, or the receivers that want it told again notice.
   */
  stop(graceMs: DurationMs): Promise<void>;
}

/** What a notifier stands on. */
export interface NotifierParts {
  readonly receivers: readonly Receiver[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics?: Pick<WardenMetrics, "inc">;
}

/** Things that last and are told again; over it the oldest is told no more, and looks over where that matters. */
export const LASTING_MAX = 10_000;

/** A notifier with an outbox for each receiver, at work from now on. */
export function createNotifier({ receivers, clock, random, log, metrics }: NotifierParts): Notifier {
  /** By key, oldest first; `receiver`: told to that one alone. */
  const lasting = new Map<string, { readonly notice: Notice; readonly receiver: string | undefined }>();
  const outboxes = new Map(
    receivers.map((receiver) => {
      const { name } = receiver;
      const count = (outcome: "sent" | "failed" | "dropped", notices: number) =>
        metrics?.inc("proxywarden_notifications_total", { receiver: name, outcome }, notices);
      // From zero, so that the first increase is an increase.
      for (const outcome of ["sent", "failed", "dropped"] as const) count(outcome, 0);
      const ofThis = () =>
        [...lasting.values()].filter((each) => (each.receiver ?? name) === name).map(({ notice }) => notice);
      return [name, createOutbox({ receiver, clock, random, log, count, lasting: ofThis })] as const;
    }),
  );

  function keep(notice: Notice, receiver: string | undefined): void {
    const oldest = lasting.keys().next();
    if (lasting.size >= LASTING_MAX && !lasting.has(notice.key) && oldest.done === false) {
      log.error({ key: oldest.value }, "too much lasts at once: the oldest is told no more");
      lasting.delete(oldest.value);
    }
    lasting.set(notice.key, { notice, receiver });
  }

  return {
    notify(notice, receiver) {
      const begun = lasting.get(notice.key)?.notice;
      // What an end is about must be as it was at the beginning, to the letter, or nobody knows what is over.
      const told = begun === undefined ? notice : { ...begun, summary: notice.summary, endsAt: notice.endsAt };
      if (isLasting(told)) keep(told, receiver);
      else lasting.delete(told.key);
      if (receiver === undefined) for (const outbox of outboxes.values()) outbox.put(told);
      else if (outboxes.has(receiver)) outboxes.get(receiver)!.put(told);
      else log.error({ receiver, key: notice.key }, "a notice is for a receiver that there is not");
    },
    resume(notices) {
      for (const notice of notices.filter(isLasting)) keep(notice, undefined);
    },
    lasting: () => [...lasting.values()].flatMap(({ notice, receiver }) => (receiver === undefined ? [notice] : [])),
    async stop(graceMs) {
      const cut = new AbortController();
      const done = new AbortController();
      const drained = Promise.all([...outboxes.values()].map((outbox) => outbox.drain(cut.signal)));
      await Promise.race([drained, clock.sleep(graceMs, done.signal)]);
      done.abort();
      cut.abort();
    },
  };
}
