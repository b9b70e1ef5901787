import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { EventLog, EventRow } from "./event-log.ts";
import type { FleetGrid } from "./fleet-view.ts";
import { actionView, decisionView } from "./row-views.ts";

/** A subscriber: a connection that receives text. */
export interface Subscriber {
  write(text: string): void;
  /** Bytes that were written and not sent yet. */
  bufferedBytes(): number;
  /** Ends the connection after what was written. */
  end(): void;
  /** Closes the connection at once. */
  disconnect(): void;
}

/** Sends events to all subscribers as server-sent events. */
export interface EventBroadcaster {
  /** Adds a subscriber that may have seen all events up to one; false: there are too many. */
  subscribe(subscriber: Subscriber, lastEventId: string | null): boolean;
  unsubscribe(subscriber: Subscriber): void;
  /** Sends new events, and refreshes the fleet grid. */
  publish(): void;
  close(): void;
}

/** `epoch`: distinguishes the events of this process from those of the previous one. */
export interface EventBroadcasterDeps {
  readonly eventLog: EventLog;
  readonly fleetGrid: FleetGrid;
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly epoch: string;
  readonly log: Log;
}

/** A few people with a few tabs. Scrapers and probes need the other connections. */
export const SUBSCRIBERS_MAX = 32;
/** Events are sent within this time. */
const PUBLISH_INTERVAL_MS: DurationMs = SECOND_MS / 2;
/** Shorter than the idle timeouts of proxies. */
const HEARTBEAT_INTERVAL_MS: DurationMs = 15 * SECOND_MS;
/** A subscriber with more unsent bytes is disconnected; it reconnects and says what it has seen. */
const BUFFERED_BYTES_MAX = 1_048_576;
/** Rows sent at once. Further rows are only counted. */
const ROWS_PER_PUBLISH_MAX = 200;
/** Delay before a browser reconnects. */
const RECONNECT_MS: DurationMs = 2 * SECOND_MS;

/** Creates a broadcaster without subscribers. It does no work while there are none. */
export function createEventBroadcaster({
  eventLog,
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
    const { rows, missed } = eventLog.after(lastPublished, ROWS_PER_PUBLISH_MAX);
    lastPublished = eventLog.lastNumber();
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
        log.error({ err: error }, "publishing events failed");
      }
      await clock.sleep(PUBLISH_INTERVAL_MS, closing.signal);
    }
    isRunning = false;
  }

  const idOf = (number: number): string => `${epoch}-${number}`;

  function eventRowText(rows: readonly EventRow[], missed: number): string {
    const headText = missed === 0 ? "" : eventText("missed", { rows: missed });
    return headText + rows.map(({ number, event }) => eventText(event.kind, toView(event), idOf(number))).join("");
  }

  /** Returns what a subscriber has missed; for events of another process the number is unknown. */
  function greeting(lastEventId: string | null): string {
    const [, from, number] = /^(.+)-(\d{1,15})$/.exec(lastEventId ?? "") ?? [];
    const hello = eventText("hello", { revision: fleetGrid.revision() }, idOf(lastPublished));
    if (lastEventId === null) return hello;
    if (from !== epoch || Number(number) > lastPublished) return eventText("missed", { rows: null }) + hello;
    const { rows, missed } = eventLog.after(Number(number), ROWS_PER_PUBLISH_MAX);
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

const toView = (event: EventRow["event"]): object =>
  event.kind === "decision" ? decisionView(event.row) : actionView(event.row);

/** JSON contains no line breaks, so it is one line of data. */
const eventText = (event: string, data: object, id?: string): string =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
