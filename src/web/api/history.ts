import { type DurationMs, HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import { leastRemaining } from "../../rate-limit/limit-headers.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Clock, Log } from "../../model/ports.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../model/session.ts";
import type { Collector } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import type { Scene } from "./status-views.ts";

/** What is kept of each moment; null: not known then. */
const SERIES = [
  "nodes",
  "online",
  "active_sessions",
  "node_management_left",
  "session_monitoring_left",
  "month_calls",
] as const;
type Series = (typeof SERIES)[number];

/** What a chart of the last hour is drawn from. */
export interface HistoryView {
  readonly step_seconds: number;
  /** Seconds since the Unix epoch, oldest first. */
  readonly at: readonly number[];
  readonly series: Readonly<Record<Series, readonly (number | null)[]>>;
}

/** Samples of the last hour for the status page's charts. Kept in memory only. */
export interface History {
  add(scene: Scene): void;
  view(): HistoryView;
}

/** Between two samples. */
export const SAMPLE_EVERY_MS: DurationMs = 10 * SECOND_MS;
const SAMPLES_MAX = HOUR_MS / SAMPLE_EVERY_MS;

/** Creates an empty history. */
export function createHistory(): History {
  const samples: { readonly at: EpochMs; readonly values: Readonly<Record<Series, number | null>> }[] = [];
  return {
    add(scene) {
      samples.push({ at: scene.now, values: sampleOf(scene) });
      if (samples.length > SAMPLES_MAX) samples.shift();
    },
    view: () => ({
      step_seconds: SAMPLE_EVERY_MS / SECOND_MS,
      at: samples.map(({ at }) => Math.round(at / SECOND_MS)),
      series: Object.fromEntries(
        SERIES.map((name) => [name, samples.map(({ values }) => values[name])]),
      ) as unknown as HistoryView["series"],
    }),
  };
}

/** Takes a sample now and then, until it is stopped. Never rejects. */
export async function keepHistory(
  history: History,
  scene: () => Scene,
  { clock, log }: { readonly clock: Pick<Clock, "sleep">; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      history.add(scene());
    } catch (error) {
      // A defect of ours: a chart has a gap then, and nothing else.
      log.error({ err: error }, "history sample failed");
    }
    await clock.sleep(SAMPLE_EVERY_MS, signal);
  }
}

const ONLINE = NODE_STATUSES.indexOf("online");
const ACTIVE = SESSION_STATUSES.indexOf("active") * SESSION_TYPES.length;

function sampleOf(scene: Scene): Readonly<Record<Series, number | null>> {
  const { snapshot, ledger } = scene;
  const fleet = isFresh(scene, "nodes", snapshot?.fleet.walkedAt) ? snapshot!.fleet : null;
  const sessions = isFresh(scene, "sessions", snapshot?.sessions?.settledAt) ? snapshot!.sessions : null;
  let online = 0;
  for (let slot = 0; slot < (fleet?.slots ?? 0); slot++) {
    if (fleet!.ids[slot] !== "" && fleet!.status[slot] === ONLINE) online++;
  }
  return {
    nodes: fleet?.count ?? null,
    online: fleet === null ? null : online,
    active_sessions:
      sessions?.counts.subarray(ACTIVE, ACTIVE + SESSION_TYPES.length).reduce((sum, count) => sum + count, 0) ?? null,
    node_management_left: leastRemaining(ledger.accounts.node_management.view),
    session_monitoring_left: leastRemaining(ledger.accounts.session_monitoring.view),
    month_calls: ledger.monthUsed,
  };
}

function isFresh({ monotonic, plan }: Scene, collector: Collector, settledAt: number | null | undefined): boolean {
  if (settledAt === null || settledAt === undefined) return false;
  return monotonic - settledAt <= (plan[collector]?.freshMs ?? Number.POSITIVE_INFINITY);
}
