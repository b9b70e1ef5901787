import { type DurationMs, HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Clock, Log } from "../../model/ports.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../model/session.ts";
import type { Collector } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import { remainingAtLeast } from "../../rate-limit/limit-headers.ts";
import type { StatusSnapshot } from "./status-views.ts";

/** What is kept of each moment; null: not known then. */
const HISTORY_SERIES = [
  "nodes",
  "online",
  "active_sessions",
  "node_management_left",
  "session_monitoring_left",
  "month_calls",
] as const;
type HistorySeries = (typeof HISTORY_SERIES)[number];

/** What a chart of the last hour is drawn from. */
export interface HistoryView {
  readonly step_seconds: number;
  /** Seconds since the Unix epoch, oldest first. */
  readonly at: readonly number[];
  readonly series: Readonly<Record<HistorySeries, readonly (number | null)[]>>;
}

/** Samples of the last hour for the status page's charts. Kept in memory only. */
export interface History {
  add(statusSnapshot: StatusSnapshot): void;
  view(): HistoryView;
}

/** Between two samples. */
export const SAMPLE_INTERVAL_MS: DurationMs = 10 * SECOND_MS;
const SAMPLES_MAX = HOUR_MS / SAMPLE_INTERVAL_MS;

/** Creates an empty history. */
export function createHistory(): History {
  const samples: { readonly at: EpochMs; readonly values: Readonly<Record<HistorySeries, number | null>> }[] = [];
  return {
    add(statusSnapshot) {
      samples.push({ at: statusSnapshot.now, values: takeSample(statusSnapshot) });
      if (samples.length > SAMPLES_MAX) samples.shift();
    },
    view: () => ({
      step_seconds: SAMPLE_INTERVAL_MS / SECOND_MS,
      at: samples.map(({ at }) => Math.round(at / SECOND_MS)),
      series: Object.fromEntries(
        HISTORY_SERIES.map((name) => [name, samples.map(({ values }) => values[name])]),
      ) as unknown as HistoryView["series"],
    }),
  };
}

/** Takes a sample now and then, until it is stopped. Never rejects. */
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
      // A defect of ours: a chart has a gap then, and nothing else.
      log.error({ err: error }, "history sample failed");
    }
    await clock.sleep(SAMPLE_INTERVAL_MS, signal);
  }
}

const ONLINE = NODE_STATUSES.indexOf("online");
const ACTIVE = SESSION_STATUSES.indexOf("active") * SESSION_TYPES.length;

function takeSample(statusSnapshot: StatusSnapshot): Readonly<Record<HistorySeries, number | null>> {
  const { snapshot, ledger } = statusSnapshot;
  const fleet = isFresh(statusSnapshot, "nodes", snapshot?.fleet.walkedAt) ? snapshot!.fleet : null;
  const sessions = isFresh(statusSnapshot, "sessions", snapshot?.sessions?.settledAt) ? snapshot!.sessions : null;
  let online = 0;
  for (let slot = 0; slot < (fleet?.slots ?? 0); slot++) {
    if (fleet!.ids[slot] !== "" && fleet!.status[slot] === ONLINE) online++;
  }
  return {
    nodes: fleet?.count ?? null,
    online: fleet === null ? null : online,
    active_sessions:
      sessions?.counts.subarray(ACTIVE, ACTIVE + SESSION_TYPES.length).reduce((sum, count) => sum + count, 0) ?? null,
    node_management_left: remainingAtLeast(ledger.accounts.node_management.headers),
    session_monitoring_left: remainingAtLeast(ledger.accounts.session_monitoring.headers),
    month_calls: ledger.monthUsed,
  };
}

function isFresh(
  { monotonic, plan }: StatusSnapshot,
  collector: Collector,
  settledAt: number | null | undefined,
): boolean {
  if (settledAt === null || settledAt === undefined) return false;
  return monotonic - settledAt <= (plan[collector]?.freshMs ?? Number.POSITIVE_INFINITY);
}
