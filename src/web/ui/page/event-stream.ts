import type { ActionView, DecisionView } from "../../api/row-views.ts";
import type { FleetChange } from "./fleet/fleet.ts";

/** Callbacks for the daemon's events. */
export interface StreamListener {
  /** Connected; the fleet stands at this revision. */
  hello(revision: number): void;
  fleet(change: FleetChange): void;
  decision(row: DecisionView): void;
  action(row: ActionView): void;
  /** Some decisions or actions were not told: the lists are to be read anew. */
  missed(): void;
  /** Whether events come; while they don't, the page has to ask. */
  state(isLive: boolean): void;
}

/** Between two tries to connect, growing. */
const RETRY_MS_MIN = 2_000;
const RETRY_MS_MAX = 30_000;

/**
 * Listens to the daemon's events for as long as the page is looked at. A browser has six connections to a server over
 * all its tabs: those in the background leave theirs to others, and come back to what they have missed.
 */
export function connectStream(listener: StreamListener): void {
  let source: EventSource | null = null;
  let lastId: string | null = null;
  let retryMs = RETRY_MS_MIN;
  let timer = 0;

  function open(): void {
    clearTimeout(timer);
    source?.close();
    const query = lastId === null ? "" : `?last_event_id=${encodeURIComponent(lastId)}`;
    const stream = new EventSource(`api/v1/events${query}`);
    source = stream;
    const on = <T>(event: string, take: (data: T) => void) =>
      stream.addEventListener(event, ({ data, lastEventId }: MessageEvent<string>) => {
        if (lastEventId !== "") lastId = lastEventId;
        take(JSON.parse(data) as T);
      });
    on<{ readonly revision: number }>("hello", ({ revision }) => {
      retryMs = RETRY_MS_MIN;
      listener.state(true);
      listener.hello(revision);
    });
    on("fleet", listener.fleet);
    on("decision", listener.decision);
    on("action", listener.action);
    on("missed", listener.missed);
    stream.addEventListener("error", () => {
      listener.state(false);
      // It tries again by itself, unless it was refused.
      if (stream.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, retryMs);
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
}
