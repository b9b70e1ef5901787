import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { Board } from "./fleet-view.ts";
import type { Feed, FeedRow } from "./event-log.ts";
import { actionView, decisionView } from "./row-views.ts";

/** A subscriber: a connection that receives text. */
export interface Onlooker {
  write(text: string): void;
  /** Bytes that it was given and has not taken yet. */
  waiting(): number;
  /** Ends it in order. */
  end(): void;
  /** Cuts it off. */
  cut(): void;
}

/** Sends events to all subscribers as server-sent events. */
export interface Live {
  /** Takes in one more, who may have seen all up to an event before; false: there are as many as there may be. */
  join(onlooker: Onlooker, lastEventId: string | null): boolean;
  leave(onlooker: Onlooker): void;
  /** Looks for something to tell, and tells it. The board is up to date after it. */
  look(): void;
  close(): void;
}

/** What a live view stands on. `epoch` tells the events of this process from those of the last. */
export interface LiveParts {
  readonly feed: Feed;
  readonly board: Board;
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly epoch: string;
  readonly log: Log;
}

/** A few people with a few tabs; scrapers and probes are to find room among the server's connections. */
export const ONLOOKERS_MAX = 32;
/** Between two looks for something to tell: what happens is seen within this. */
const LOOK_MS: DurationMs = SECOND_MS / 2;
/** Shorter than the idle time-outs of proxies, and than the server's own. */
const HEARTBEAT_MS: DurationMs = 15 * SECOND_MS;
/** One who has not taken so much is cut off: it comes back, and says what it has seen. */
const WAITING_BYTES_MAX = 1_048_576;
/** Rows sent at once. Further rows are only counted. */
const ROWS_AT_ONCE_MAX = 200;
/** What a browser waits before it comes back. */
const RETRY_MS: DurationMs = 2 * SECOND_MS;

/** Creates a broadcaster without subscribers. It does no work while there are none. */
export function createLive({ feed, board, clock, epoch, log }: LiveParts): Live {
  const onlookers = new Set<Onlooker>();
  const closing = new AbortController();
  let told = 0;
  let saidAt = clock.monotonic();
  let isRunning = false;

  function tellAll(text: string): void {
    for (const onlooker of onlookers) {
      if (onlooker.waiting() > WAITING_BYTES_MAX) {
        onlookers.delete(onlooker);
        onlooker.cut();
      } else onlooker.write(text);
    }
    saidAt = clock.monotonic();
  }

  function look(): void {
    const { rows, missed } = feed.after(told, ROWS_AT_ONCE_MAX);
    told = feed.last();
    const change = board.refresh();
    const text = newsText(rows, missed) + (change === null ? "" : eventText("fleet", change));
    if (text !== "") tellAll(text);
    else if (clock.monotonic() - saidAt >= HEARTBEAT_MS) tellAll(": still here\n\n");
  }

  async function run(): Promise<void> {
    while (onlookers.size > 0 && !closing.signal.aborted) {
      try {
        look();
      } catch (error) {
        // A defect of ours: who looks on must not bring down what is looked at.
        log.error({ err: error }, "publishing events failed");
      }
      await clock.sleep(LOOK_MS, closing.signal);
    }
    isRunning = false;
  }

  const idOf = (number: number): string => `${epoch}-${number}`;

  function newsText(rows: readonly FeedRow[], missed: number): string {
    const head = missed === 0 ? "" : eventText("missed", { rows: missed });
    return head + rows.map(({ number, news }) => eventText(news.kind, viewOf(news), idOf(number))).join("");
  }

  /** What one who comes back has missed; of another process, nobody knows how much. */
  function welcome(lastEventId: string | null): string {
    const [, from, number] = /^(.+)-(\d{1,15})$/.exec(lastEventId ?? "") ?? [];
    const hello = eventText("hello", { revision: board.revision() }, idOf(told));
    if (lastEventId === null) return hello;
    if (from !== epoch || Number(number) > told) return eventText("missed", { rows: null }) + hello;
    const { rows, missed } = feed.after(Number(number), ROWS_AT_ONCE_MAX);
    return newsText(rows, missed) + hello;
  }

  return {
    join(onlooker, lastEventId) {
      if (onlookers.size >= ONLOOKERS_MAX || closing.signal.aborted) return false;
      look();
      onlooker.write(`retry: ${RETRY_MS}\n${welcome(lastEventId)}`);
      onlookers.add(onlooker);
      if (!isRunning) {
        isRunning = true;
        void run();
      }
      return true;
    },
    leave: (onlooker) => void onlookers.delete(onlooker),
    look,
    close() {
      closing.abort();
      for (const onlooker of onlookers) onlooker.end();
      onlookers.clear();
    },
  };
}

const viewOf = (news: FeedRow["news"]): object =>
  news.kind === "decision" ? decisionView(news.row) : actionView(news.row);

/** JSON has no line breaks in it: one line of data. */
const eventText = (event: string, data: object, id?: string): string =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
