import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { EventLog, EventRow } from "./event-log.ts";
import type { FleetGrid } from "./fleet-view.ts";
import { actionView, decisionView } from "./row-views.ts";

/** A subscriber: a connection that receives text. */
export interface Subscriber {
  write(text: string): void;
  /** Bytes that it was given and has not taken yet. */
  bufferedBytes(): number;
  /** Ends it in order. */
  end(): void;
  /** Cuts it off. */
  disconnect(): void;
}

/** Sends events to all subscribers as server-sent events. */
export interface EventBroadcaster {
  /** Takes in one more, who may have seen all up to an event before; false: there are as many as there may be. */
  subscribe(subscriber: Subscriber, lastEventId: string | null): boolean;
  unsubscribe(subscriber: Subscriber): void;
  /** Looks for something to tell, and tells it. The board is up to date after it. */
  publish(): void;
  close(): void;
}

/** What a live view stands on. `epoch` tells the events of this process from those of the last. */
export interface EventBroadcasterDeps {
  readonly eventLog: EventLog;
  readonly fleetGrid: FleetGrid;
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly epoch: string;
  readonly log: Log;
}

/** A few people with a few tabs; scrapers and probes are to find room among the server's connections. */
export const SUBSCRIBERS_MAX = 32;
/** Between two looks for something to tell: what happens is seen within this. */
const PUBLISH_INTERVAL_MS: DurationMs = SECOND_MS / 2;
/** Shorter than the idle time-outs of proxies, and than the server's own. */
const HEARTBEAT_INTERVAL_MS: DurationMs = 15 * SECOND_MS;
/** One who has not taken so much is cut off: it comes back, and says what it has seen. */
const BUFFERED_BYTES_MAX = 1_048_576;
/** Rows sent at once. Further rows are only counted. */
const ROWS_PER_PUBLISH_MAX = 200;
/** What a browser waits before it comes back. */
const RECONNECT_MS: DurationMs = 2 * SECOND_MS;

/** Creates a broadcaster without subscribers. It does no work while there are none. */
export function createEventBroadcaster({
  eventLog: feed,
  fleetGrid,
  clock,
  epoch,
  log,
}: EventBroadcasterDeps): EventBroadcaster {
  const subscribers = new Set<Subscriber>();
  const closing = new AbortController();
  let lastPublished = 0;
  let publishedAt = clock.monotonic();
  let isRunning = false;

  function sendToAll(text: string): void {
    for (const subscriber of subscribers) {
      if (subscriber.bufferedBytes() > BUFFERED_BYTES_MAX) {
        subscribers.delete(subscriber);
        subscriber.disconnect();
      } else subscriber.write(text);
    }
    publishedAt = clock.monotonic();
  }

  function publish(): void {
    const { rows, missed } = feed.after(lastPublished, ROWS_PER_PUBLISH_MAX);
    lastPublished = feed.lastNumber();
    const change = fleetGrid.refresh();
    const text = eventRowText(rows, missed) + (change === null ? "" : eventText("fleet", change));
    if (text !== "") sendToAll(text);
    else if (clock.monotonic() - publishedAt >= HEARTBEAT_INTERVAL_MS) sendToAll(": still here\n\n");
  }

  async function run(): Promise<void> {
    while (subscribers.size > 0 && !closing.signal.aborted) {
      try {
        publish();
      } catch (error) {
        // A defect of ours: who looks on must not bring down what is looked at.
        log.error({ err: error }, "publishing events failed");
      }
      await clock.sleep(PUBLISH_INTERVAL_MS, closing.signal);
    }
    isRunning = false;
  }

  const idOf = (number: number): string => `${epoch}-${number}`;

  function eventRowText(rows: readonly EventRow[], missed: number): string {
    const headText = missed === 0 ? "" : eventText("missed", { rows: missed });
    return headText + rows.map(({ number, event: news }) => eventText(news.kind, toView(news), idOf(number))).join("");
  }

  /** What one who comes back has missed; of another process, nobody knows how much. */
  function greeting(lastEventId: string | null): string {
    const [, from, number] = /^(.+)-(\d{1,15})$/.exec(lastEventId ?? "") ?? [];
    const hello = eventText("hello", { revision: fleetGrid.revision() }, idOf(lastPublished));
    if (lastEventId === null) return hello;
    if (from !== epoch || Number(number) > lastPublished) return eventText("missed", { rows: null }) + hello;
    const { rows, missed } = feed.after(Number(number), ROWS_PER_PUBLISH_MAX);
    return eventRowText(rows, missed) + hello;
  }

  return {
    subscribe(subscriber, lastEventId) {
      if (subscribers.size >= SUBSCRIBERS_MAX || closing.signal.aborted) return false;
      publish();
      subscriber.write(`retry: ${RECONNECT_MS}\n${greeting(lastEventId)}`);
      subscribers.add(subscriber);
      if (!isRunning) {
        isRunning = true;
        void run();
      }
      return true;
    },
    unsubscribe: (subscriber) => void subscribers.delete(subscriber),
    publish,
    close() {
      closing.abort();
      for (const subscriber of subscribers) subscriber.end();
      subscribers.clear();
    },
  };
}

const toView = (news: EventRow["event"]): object =>
  news.kind === "decision" ? decisionView(news.row) : actionView(news.row);

/** JSON has no line breaks in it: one line of data. */
const eventText = (event: string, data: object, id?: string): string =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
