import { byName } from "../../base/by-name.ts";
import { type DurationMs, HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { Collector } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import { type StatusSnapshot, sessionsByStatus, statusCounts } from "./status-views.ts";

/** The samples of the last hour, in memory. */
export type History = ReturnType<typeof createHistory>;
export type HistoryView = ReturnType<History["view"]>;

/** Time between two samples. */
const SAMPLE_INTERVAL_MS: DurationMs = 10 * SECOND_MS;
const SAMPLES_MAX = HOUR_MS / SAMPLE_INTERVAL_MS;

type Sample = ReturnType<typeof takeSample>;
const SERIES = [
  ...(["nodes", "online", "active_sessions"] as const),
  ...(["node_management_left", "session_monitoring_left", "month_calls"] as const),
] satisfies (keyof Sample)[];

/** Creates an empty history. */
export function createHistory() {
  const samples: { readonly at: EpochMs; readonly values: Sample }[] = [];
  return {
    add(statusSnapshot: StatusSnapshot): void {
      const { now: at } = statusSnapshot;
      // The wall clock may have been set back. A chart needs ascending times.
      while ((samples.at(-1)?.at ?? at) > at) samples.pop();
      samples.push({ at, values: takeSample(statusSnapshot) });
      if (samples.length > SAMPLES_MAX) samples.shift();
    },
    /** `GET /api/v1/history`: samples of the last hour, for the charts of the status page. */
    view: () => ({
      step_seconds: SAMPLE_INTERVAL_MS / SECOND_MS,
      /** Seconds since the Unix epoch, oldest first. */
      at: samples.map(({ at }) => Math.round(at / SECOND_MS)),
      /** Null if unknown at that time. */
      series: byName(SERIES, (name) => samples.map(({ values }) => values[name])),
    }),
  };
}

/** Takes a sample every ten seconds until `signal` aborts. Never rejects. */
export async function recordHistory(
  history: History,
  statusSnapshot: () => StatusSnapshot,
  { clock, log }: { readonly clock: Pick<Clock, "sleep">; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      history.add(statusSnapshot());
    } catch (error) {
      // A missing sample affects only the charts.
      log.error({ err: error }, "history sample failed");
    }
    await clock.sleep(SAMPLE_INTERVAL_MS, signal);
  }
}

function takeSample(statusSnapshot: StatusSnapshot) {
  const { snapshot, ledger } = statusSnapshot;
  const fleet = isFresh(statusSnapshot, "nodes", snapshot?.fleet.walkedAt) ? snapshot!.fleet : null;
  const sessions = isFresh(statusSnapshot, "sessions", snapshot?.sessions?.settledAt) ? snapshot!.sessions : null;
  return {
    nodes: fleet?.count ?? null,
    online: fleet && statusCounts(fleet).online,
    active_sessions: sessions && sessionsByStatus(sessions).active,
    node_management_left: ledger.categories.node_management.stated.remainingAtLeast(),
    session_monitoring_left: ledger.categories.session_monitoring.stated.remainingAtLeast(),
    month_calls: ledger.monthUsed,
  };
}

/** Returns whether the data of a collector's last walk is fresh. `walkedAt` is when the walk ended, or null if none has. */
function isFresh({ monotonic, plan }: StatusSnapshot, collector: Collector, walkedAt: number | null = null): boolean {
  return walkedAt !== null && monotonic - walkedAt <= (plan[collector]?.freshMs ?? Number.POSITIVE_INFINITY);
}
