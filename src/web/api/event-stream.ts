import type { ServerResponse } from "node:http";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { runInSlices } from "../../platform/event-loop.ts";
import { createSequence } from "../../platform/sequence.ts";
import type { WebContext } from "../http/route.ts";
import type { EventRow } from "./event-log.ts";
import type { FleetGrid } from "./fleet-view.ts";
import { actionView, decisionView, operatorCommandView } from "./row-views.ts";

type EventBroadcasterDeps = Pick<WebContext, "clock" | "log" | "eventLog" | "epoch"> & {
  readonly fleetGrid: FleetGrid;
};

/** Maximum number of subscribers. Scrapers and probes need the other connections. */
export const SUBSCRIBERS_MAX = 32;
/** Events are sent within this time. */
const PUBLISH_INTERVAL_MS: DurationMs = SECOND_MS / 2;
/** Interval of heartbeats, shorter than the idle timeouts of proxies. Without them the page considers a stream broken. */
const HEARTBEAT_INTERVAL_MS: DurationMs = 15 * SECOND_MS;
/** A subscriber with more unsent bytes is disconnected. It reconnects with the id of its last event. */
const BUFFERED_BYTES_MAX = 1_048_576;
/** Maximum number of events sent at once: the latest ones. Earlier ones are only counted. */
const ROWS_PER_PUBLISH_MAX = 200;
/** Delay before a browser reconnects. */
const RECONNECT_MS: DurationMs = 2 * SECOND_MS;

/** The second header keeps proxies such as nginx from buffering the stream. */
const EVENT_STREAM_HEADERS = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

/** Sends server-sent events to all subscribers, each of which has one long response. It is idle without subscribers. */
export class EventBroadcaster {
  readonly #deps: EventBroadcasterDeps;
  readonly #subscribers = new Set<ServerResponse>();
  readonly #closing = new AbortController();
  #lastPublished = 0;
  #publishedAt: MonotonicMs;
  readonly #inSequence = createSequence();
  #isRunning = false;

  constructor(deps: EventBroadcasterDeps) {
    this.#deps = deps;
    this.#publishedAt = deps.clock.monotonic();
  }

  /**
   * Sends events to a client until its connection closes. `lastEventId` is the last event that it has received. Resolves
   * to false, and sends nothing, if there are too many clients or the server is stopping.
   */
  async subscribe(response: ServerResponse, lastEventId: string | null): Promise<boolean> {
    if (this.#isFull()) return false;
    await this.publish();
    if (response.destroyed) return true;
    if (this.#isFull()) return false;
    this.#sendRows();
    response.writeHead(200, EVENT_STREAM_HEADERS);
    response.write(`retry: ${RECONNECT_MS}\n${this.#greeting(lastEventId)}`);
    this.#subscribers.add(response);
    response.once("close", () => this.#subscribers.delete(response));
    if (!this.#isRunning) void this.#run();
    return true;
  }

  /** Sends new events, and refreshes the fleet grid in slices, after the refreshes of earlier calls. */
  publish(): Promise<void> {
    return this.#inSequence(() => this.#publish());
  }

  close(): void {
    this.#closing.abort();
    for (const subscriber of this.#subscribers) subscriber.end();
    this.#subscribers.clear();
  }

  async #publish(): Promise<void> {
    const { fleetGrid, clock } = this.#deps;
    this.#sendRows();
    const change = await runInSlices(fleetGrid.refresh(), clock);
    if (change !== null) this.#sendToAll(eventText("fleet", change));
    if (clock.monotonic() - this.#publishedAt >= HEARTBEAT_INTERVAL_MS) this.#sendToAll(eventText("heartbeat", {}));
  }

  #sendRows(): void {
    const { eventLog } = this.#deps;
    const { rows, missed } = eventLog.after(this.#lastPublished, ROWS_PER_PUBLISH_MAX);
    this.#lastPublished = eventLog.lastNumber();
    if (missed > 0 || rows.length > 0) this.#sendToAll(this.#rowsText(rows, missed));
  }

  #isFull(): boolean {
    return this.#subscribers.size >= SUBSCRIBERS_MAX || this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#isRunning = true;
    for (;;) {
      await clock.sleep(PUBLISH_INTERVAL_MS, this.#closing.signal);
      if (this.#subscribers.size === 0 || this.#closing.signal.aborted) break;
      try {
        await this.publish();
      } catch (error) {
        log.error({ err: error }, "publishing events failed");
      }
    }
    this.#isRunning = false;
  }

  #sendToAll(text: string): void {
    for (const subscriber of this.#subscribers) {
      if (subscriber.writableLength > BUFFERED_BYTES_MAX) {
        this.#subscribers.delete(subscriber);
        subscriber.destroy();
      } else subscriber.write(text);
    }
    this.#publishedAt = this.#deps.clock.monotonic();
  }

  /**
   * Returns the first events for a subscriber: those that it has missed, and `hello`. If its last event is from another
   * process, the number of missed events is unknown.
   */
  #greeting(lastEventId: string | null): string {
    const { eventLog, fleetGrid, epoch } = this.#deps;
    const [, from, number] = /^(.+)-(\d{1,15})$/.exec(lastEventId ?? "") ?? [];
    const hello = eventText("hello", { revision: fleetGrid.revision() }, this.#idOf(this.#lastPublished));
    if (lastEventId === null) return hello;
    if (from !== epoch || Number(number) > this.#lastPublished) return eventText("missed", { rows: null }) + hello;
    const { rows, missed } = eventLog.after(Number(number), ROWS_PER_PUBLISH_MAX);
    return this.#rowsText(rows, missed) + hello;
  }

  #rowsText(rows: readonly EventRow[], missed: number): string {
    const head = missed === 0 ? "" : eventText("missed", { rows: missed });
    const text = ({ number, event }: EventRow) => eventText(EVENT_NAMES[event.kind], toView(event), this.#idOf(number));
    return head + rows.map(text).join("");
  }

  #idOf(number: number): string {
    return `${this.#deps.epoch}-${number}`;
  }
}

/** Names of the server-sent events, by kind of journal change. */
const EVENT_NAMES = { decision: "decision", action: "action", command: "order" } as const;

function toView(event: EventRow["event"]): object {
  if (event.kind === "command") return operatorCommandView(event.row);
  return event.kind === "decision" ? decisionView(event.row) : actionView(event.row);
}

/** JSON contains no line breaks, so it is one line of data. */
const eventText = (event: string, data: object, id?: string): string =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
