import type { FleetGridChange } from "../../api/fleet-columns.ts";
import type { ActionView, DecisionView, OperatorCommandView } from "../../api/row-views.ts";
import { type ActivityLine, actionLine, commandLine, decisionLine } from "./activity/activity-lines.ts";

/** Callbacks for the daemon's events. */
interface StreamListener {
  /**
   * Called after connecting, with the current revision of the fleet. `isResumed` is false for the first connection. A later
   * connection begins with the events since the previous one, or with `missed`.
   */
  hello(revision: number, isResumed: boolean): void;
  fleet(change: FleetGridChange): void;
  /** Called for each decision, action and operator command. */
  line(line: ActivityLine): void;
  /** Called when events were missed, so everything must be reloaded. */
  missed(): void;
  /** Called with whether the stream is open. While it is not, the page polls. */
  state(isLive: boolean): void;
}

/** After this time without an event, not even a heartbeat (every 15 s), the stream is considered broken. */
const SILENCE_MS_MAX = 35_000;
/** Bounds of the delay between connection attempts, which doubles. */
const RETRY_MS_MIN = 2_000;
const RETRY_MS_MAX = 30_000;

/**
 * Listens to the daemon's events while the page is visible. A browser opens at most six connections to a server for all
 * tabs together, so background tabs close theirs and catch up when they become visible. Returns a function that
 * reconnects without waiting.
 */
export function connectStream(listener: StreamListener): () => void {
  let source: EventSource | null = null;
  let lastId: string | null = null;
  let retryMs = RETRY_MS_MIN;
  let timer = 0;

  /** Reopens the stream after a delay. Another call before that restarts the delay. */
  function reopenAfter(ms: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      listener.state(false);
      open();
    }, ms);
  }

  function open(): void {
    reopenAfter(SILENCE_MS_MAX);
    source?.close();
    let isResumed = lastId !== null;
    const query = lastId === null ? "" : `?last_event_id=${encodeURIComponent(lastId)}`;
    const stream = new EventSource(`api/v1/events${query}`);
    source = stream;
    const on = <T>(event: string, take: (data: T) => void) =>
      stream.addEventListener(event, ({ data, lastEventId }: MessageEvent<string>) => {
        reopenAfter(SILENCE_MS_MAX);
        if (lastEventId !== "") lastId = lastEventId;
        take(JSON.parse(data) as T);
      });
    on<{ readonly revision: number }>("hello", ({ revision }) => {
      retryMs = RETRY_MS_MIN;
      listener.state(true);
      listener.hello(revision, isResumed);
      isResumed = true;
    });
    on("heartbeat", () => {});
    on("fleet", listener.fleet);
    on<DecisionView>("decision", (row) => listener.line(decisionLine(row)));
    on<ActionView>("action", (row) => listener.line(actionLine(row)));
    on<OperatorCommandView>("order", (row) => listener.line(commandLine(row)));
    on("missed", listener.missed);
    stream.addEventListener("error", () => {
      listener.state(false);
      // The browser reconnects, unless the request was refused.
      if (stream.readyState !== EventSource.CLOSED) return;
      reopenAfter(retryMs);
      retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
    });
  }

  function close(): void {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (source === null) open();
  });
  if (!document.hidden) open();
  return () => {
    if (!document.hidden && source?.readyState !== EventSource.OPEN) open();
  };
}
