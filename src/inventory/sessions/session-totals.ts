import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { OnLabelsFolded } from "../../model/label-values.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionRecord } from "../../model/session.ts";
import {
  type Histogram,
  RECENT_SESSION_MS,
  SESSION_DURATION_BUCKETS_SECONDS,
  type SessionSummary,
} from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { createLabelCounts } from "../label-counts.ts";
import { createSessionTable } from "./session-table.ts";
import { createSessionNodeTable } from "./sessions-by-node.ts";

/** Sessions folded page by page into counts and byte counters; of each session only its last numbers are kept. */
export interface SessionTotals {
  /** Begins a walk; `serviceNow` is the service's clock. */
  beginWalk(serviceNow: EpochMs): void;
  /** Takes in one session. True if this walk had not met it before. */
  add(session: SessionRecord): boolean;
  /**
   * Ends a walk. Its counts replace those before, unless it was cut off before the end of the list: those of a walk that was
   * are taken only where there are no others, or after {@link ABORTED_WALKS_MAX} of them in a row. Bytes gained always count.
   */
  endWalk(end: SessionWalkEnd, at: MonotonicMs): void;
  /** What is known; null before the first walk. */
  view(): SessionSummary | null;
  /** Sessions remembered. */
  size(): number;
}

/**
 * `complete`: the walk accounted for all sessions. `incomplete`: it missed some. `cut`: it was given up before the end.
 * `failed`: it has seen nothing.
 */
export type SessionWalkEnd = "complete" | "incomplete" | "cut" | "failed";

/** Cut-off walks in a row after which what they show replaces an older view. */
const ABORTED_WALKS_MAX = 3;

/** A session has left when this many complete walks in a row did not meet it: a walk may miss one in a hundred. */
const ABSENCES_MAX = 2;

/** Incomplete walks that a session is remembered through without being met. */
const WALKS_REMEMBERED = 20;

/** A failure tells of its node for so long: a node that heals goes on being listed with the failures it had. */
const FAILING_MS_MAX: DurationMs = MINUTE_MS;

const statusIndex = new Map<string, number>(SESSION_STATUSES.map((status, index) => [status, index]));
const typeIndex = new Map<string, number>(SESSION_TYPES.map((type, index) => [type, index]));
const endedStatuses: ReadonlySet<string> = new Set(["closed", "error", "timeout"]);
const failedStatuses: ReadonlySet<string> = new Set(["error", "timeout"]);

/** What a fold asks and tells beside its walks. */
export interface SessionTotalsDeps {
  /** Whether the fleet has the node. */
  readonly isKnownNode: (nodeId: string) => boolean;
  readonly onFolded: OnLabelsFolded;
}

/**
 * `failedListed`: whether an earlier process has seen a failed session in the list. Byte counters and the histogram
 * begin at 0 with each process, as Prometheus' counters do; nothing of them is kept over a restart.
 */
export function createSessionTotals(
  failedListedBefore: boolean,
  { isKnownNode, onFolded }: SessionTotalsDeps,
): SessionTotals {
  const table = createSessionTable();
  const nodes = createSessionNodeTable(isKnownNode, onFolded);
  const countries = createLabelCounts("proxynet_country_sessions", onFolded);
  const customers = createLabelCounts("proxynet_customer_sessions", onFolded);
  const durations = createSessionDurations();
  let failedListed = failedListedBefore;
  let walk = 0;
  let walkBeganAt: EpochMs = 0;
  let lastCompleteWalk = 0;
  const walks = createWalkTimes();
  let counts = createCounts();
  /** When the last complete walk began, on the service's clock: what started since was not there to be seen. */
  let seenUntil: EpochMs = Number.POSITIVE_INFINITY;
  let view: SessionSummary | null = null;
  let abortedWalks = 0;

  function count(session: SessionRecord, row: number, status: number, type: number): void {
    counts[status * SESSION_TYPES.length + type]!++;
    countries.add(session.country ?? "", 1);
    if (session.customerId !== null) customers.add(session.customerId, 1);
    if (session.nodeId !== null) nodes.count(session.nodeId, status, isRecent(session, row));
  }

  function addBytes(session: SessionRecord, row: number, from: number): void {
    const sent = byteGain(table.columns.sent, row, session.bytesSent, from);
    const received = byteGain(table.columns.received, row, session.bytesReceived, from);
    if (session.nodeId !== null && sent + received > 0) nodes.addBytes(session.nodeId, sent, received);
  }

  /** Whether it ended within so long; where times don't tell, by the walks that have met it so. */
  function endedWithin(session: SessionRecord, row: number, ms: DurationMs, knownTo: number): boolean {
    if (table.columns.endedWalk[row]! <= knownTo) return false;
    if (session.startedAtMs === null || session.durationSeconds === null) return lastCompleteWalk > 0;
    return session.startedAtMs + session.durationSeconds * SECOND_MS >= walkBeganAt - ms;
  }

  const isRecent = (session: SessionRecord, row: number): boolean =>
    !endedStatuses.has(session.status) || endedWithin(session, row, RECENT_SESSION_MS, walks.before);

  const failsNow = (session: SessionRecord, row: number): boolean =>
    failedStatuses.has(session.status) &&
    lastCompleteWalk > 0 &&
    endedWithin(session, row, FAILING_MS_MAX, lastCompleteWalk);

  /** After a complete walk: forgets the sessions that have left, and counts how long they lasted. */
  function sweepEnded(): void {
    table.sweep((row) => {
      if (table.columns.walk[row] === walk) return false;
      table.columns.absences[row]!++;
      if (table.columns.absences[row]! < ABSENCES_MAX) return false;
      if (table.columns.endedWalk[row] === 0)
        durations.observe(table.columns.type[row]!, table.columns.durationSeconds[row]!);
      return true;
    });
    seenUntil = walkBeganAt;
    lastCompleteWalk = walk;
  }

  return {
    beginWalk(serviceNow) {
      walk++;
      walkBeganAt = serviceNow;
      walks.begin(walk, serviceNow);
      counts = createCounts();
      countries.begin();
      customers.begin();
      nodes.beginWalk();
    },
    add(session) {
      const row = table.row(session.id);
      const startedSince = (session.startedAtMs ?? 0) >= seenUntil;
      // At first sight only what started since the last complete walk is known to have gained its bytes since.
      const counts = !table.isNew() || startedSince;
      const type = typeIndex.get(session.type)!;
      addBytes(session, row, table.isNew() && startedSince ? 0 : Number.NaN);
      table.columns.type[row] = type;
      table.columns.durationSeconds[row] = session.durationSeconds ?? table.columns.durationSeconds[row]!;
      table.columns.absences[row] = 0;
      if (failedStatuses.has(session.status)) failedListed = true;
      if (endedStatuses.has(session.status) && table.columns.endedWalk[row] === 0) {
        table.columns.endedWalk[row] = walk;
        if (counts) durations.observe(type, table.columns.durationSeconds[row]!);
      }
      if (session.nodeId !== null && failsNow(session, row)) nodes.failing(session.nodeId);
      if (table.columns.walk[row] === walk) return false;
      table.columns.walk[row] = walk;
      count(session, row, statusIndex.get(session.status)!, type);
      return true;
    },
    endWalk(end, at) {
      const complete = end === "complete";
      abortedWalks = end === "cut" ? abortedWalks + 1 : 0;
      if (complete) sweepEnded();
      // A walk need never be complete: what none of the last ones has shown is forgotten.
      else table.sweep((row) => walk - table.columns.walk[row]! > WALKS_REMEMBERED);
      const isAccepted = end === "cut" ? view === null || abortedWalks >= ABORTED_WALKS_MAX : end !== "failed";
      if (isAccepted) nodes.finishWalk(complete);
      else nodes.forgetIdle();
      if (isAccepted) {
        view = {
          settledAt: at,
          complete,
          counts,
          countries: countries.finish(),
          customers: rankCustomers(customers.finish()),
          failedListed,
          nodes: nodes.view(),
          durations: durations.copy(),
        };
      } else if (view !== null) {
        view = { ...view, failedListed, nodes: nodes.view(), durations: durations.copy() };
      }
    },
    view: () => view,
    size: () => table.size,
  };
}

/** When the last walks began, on the service's clock. */
function createWalkTimes() {
  let begun: { readonly walk: number; readonly at: EpochMs }[] = [];
  let before = 0;
  return {
    begin(walk: number, at: EpochMs): void {
      const old = begun.filter((each) => each.at < at - RECENT_SESSION_MS);
      before = old.at(-1)?.walk ?? before;
      begun = [...begun.slice(old.length), { walk, at }];
    },
    /** The last walk that began too long before this one for what it met as ended to be recent; 0: none. */
    get before() {
      return before;
    },
  };
}

const createCounts = () => new Float64Array(SESSION_STATUSES.length * SESSION_TYPES.length);

/**
 * Notes the new value; returns what was gained since the one before, or since `from` where there was none (NaN: nobody
 * knows). A missing value keeps the old one, a smaller one gains nothing.
 */
function byteGain(column: Float64Array, row: number, value: number | null, from: number): number {
  if (value === null) return 0;
  const before = Number.isNaN(column[row]!) ? from : column[row]!;
  column[row] = value;
  return Math.max(0, value - before) || 0;
}

/** Most sessions first; among equals by name, so that the same sessions always give the same order. */
const rankCustomers = (customers: ReadonlyMap<string, number>) =>
  [...customers]
    .map(([customerId, sessions]) => ({ customerId, sessions }))
    .sort((a, b) => b.sessions - a.sessions || (a.customerId < b.customerId ? -1 : 1));

/** Creates one growing histogram per session type. */
function createSessionDurations() {
  const histograms = SESSION_TYPES.map(() => ({
    counts: new Float64Array(SESSION_DURATION_BUCKETS_SECONDS.length),
    count: 0,
    sum: 0,
  }));
  return {
    /** Adds a session that ended. NaN, a duration that the service never stated, is ignored. */
    observe(type: number, seconds: number): void {
      if (Number.isNaN(seconds)) return;
      const histogram = histograms[type]!;
      histogram.count++;
      histogram.sum += seconds;
      SESSION_DURATION_BUCKETS_SECONDS.forEach((bound, index) => {
        if (seconds <= bound) histogram.counts[index]!++;
      });
    },
    copy: (): readonly Histogram[] =>
      histograms.map(({ counts, count, sum }) => ({ counts: counts.slice(), count, sum })),
  };
}
