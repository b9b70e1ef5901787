import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { eachInSteps, type Steps } from "../../base/steps.ts";
import type { NodeId } from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionRecord } from "../../model/session.ts";
import { RECENT_SESSION_MS, type SessionSummary } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { LabelCounts } from "../label-counts.ts";
import { SessionDurations } from "./session-durations.ts";
import { SessionTable } from "./session-table.ts";
import { SessionNodeTable, type SessionNodeTableDeps, withoutIds } from "./sessions-by-node.ts";

/**
 * `complete`: the walk showed enough of the sessions (see `SessionWalkHistory`). `incomplete`: it missed too many.
 * `cut`: it stopped before the end of the list. `failed`: it read nothing.
 */
export type SessionWalkEnd = "complete" | "incomplete" | "cut" | "failed";

/** After this many cut walks in a row, their counts replace older ones. */
const CUT_WALKS_MAX = 3;

/**
 * A session has ended when this many complete walks in a row did not show it. One is not enough, since a complete walk
 * may miss some sessions.
 */
const ABSENCES_MAX = 2;

/** A session that this many walks in a row, complete or not, did not show is forgotten. Failed walks do not count. */
const WALKS_REMEMBERED = 20;

/**
 * A failed session that ended longer ago than this does not count as a current failure, because failed sessions stay
 * listed after the node recovers.
 */
const FAILING_MS_MAX: DurationMs = MINUTE_MS;

const endedStatuses: ReadonlySet<string> = new Set(["closed", "error", "timeout"]);
const failedStatuses: ReadonlySet<string> = new Set(["error", "timeout"]);

/**
 * Aggregates sessions page by page into counts, byte counters and a histogram of durations. Only the last numbers of
 * each session are stored. Byte counters and the histogram start at 0 in each process, as counters do in Prometheus.
 */
export class SessionTotals {
  readonly #table = new SessionTable();
  readonly #nodes: SessionNodeTable;
  readonly #countries;
  readonly #customers;
  readonly #durations = new SessionDurations();
  #failedListed: boolean;
  #counts = createCounts();
  #walk = 0;
  #walkBeganAt: EpochMs = 0;
  #lastCompleteWalk = 0;
  /** When the last complete walk began. Sessions that started later are new. */
  #lastCompleteBeganAt: EpochMs = Number.POSITIVE_INFINITY;
  /**
   * Walks that began within {@link RECENT_SESSION_MS} before the current one, and the last walk before those, 0 if
   * there is none.
   */
  #recentWalks: { readonly walk: number; readonly at: EpochMs }[] = [];
  #lastOldWalk = 0;
  #cutWalks = 0;
  #view: SessionSummary | null = null;
  /** Slots of nodes in {@link #view} that have left the fleet. */
  readonly #departed = new Set<number>();

  /** `failedListed` says whether the list has shown a failed session before, in an earlier process. */
  constructor(failedListed: boolean, deps: SessionNodeTableDeps) {
    this.#failedListed = failedListed;
    this.#nodes = new SessionNodeTable(deps);
    this.#countries = new LabelCounts("proxynet_country_sessions", deps.onFolded);
    this.#customers = new LabelCounts("proxynet_customer_sessions", deps.onFolded);
  }

  /** Returns the totals, or null before the first walk. */
  view(): SessionSummary | null {
    if (this.#view !== null && this.#departed.size > 0) {
      const { nodes } = this.#view;
      this.#view = { ...this.#view, nodes: { ...nodes, ids: withoutIds(nodes.ids, this.#departed) } };
      this.#departed.clear();
    }
    return this.#view;
  }

  /** Leaves out a node that has left the fleet, unless a later walk shows sessions of it. */
  forgetNode(nodeId: NodeId): void {
    const slot = this.#nodes.hide(nodeId);
    if (slot !== null && this.#view?.nodes.ids[slot] === nodeId) this.#departed.add(slot);
  }

  /** Returns the number of sessions stored. */
  size(): number {
    return this.#table.size;
  }

  /** Begins a walk. `serviceNow` is the service's clock. */
  beginWalk(serviceNow: EpochMs): void {
    this.#walk++;
    this.#walkBeganAt = serviceNow;
    const old = this.#recentWalks.filter(({ at }) => at < serviceNow - RECENT_SESSION_MS);
    this.#lastOldWalk = old.at(-1)?.walk ?? this.#lastOldWalk;
    this.#recentWalks = [...this.#recentWalks.slice(old.length), { walk: this.#walk, at: serviceNow }];
    this.#counts = createCounts();
    this.#countries.begin();
    this.#customers.begin();
    this.#nodes.beginWalk();
  }

  /**
   * Adds a session. Returns false if the current walk has shown it before: either record may be the older one, so only
   * the first counts.
   */
  add(session: SessionRecord): boolean {
    const row = this.#table.row(session.id);
    const { columns, isNew } = this.#table;
    if (columns.walk[row] === this.#walk) return false;
    columns.walk[row] = this.#walk;
    const isStartedSince = (session.startedAtMs ?? 0) >= this.#lastCompleteBeganAt;
    const type = SESSION_TYPES.indexOf(session.type);
    const node = session.nodeId === null ? null : this.#nodes.slotOf(session.nodeId);
    const hasEnded = endedStatuses.has(session.status);
    const isOlder = !hasEnded && this.#isOlder(session, row);
    if (!isOlder) {
      // The bytes of a session seen for the first time count only if it started since the last complete walk.
      this.#addBytes(session, row, node, isNew && isStartedSince ? 0 : Number.NaN);
      columns.durationSeconds[row] = session.durationSeconds ?? columns.durationSeconds[row]!;
    }
    columns.type[row] = type;
    columns.absences[row] = 0;
    if (failedStatuses.has(session.status)) this.#failedListed = true;
    if (hasEnded && columns.endedWalk[row] === 0) {
      columns.endedWalk[row] = this.#walk;
      if (!isNew || isStartedSince) this.#durations.observe(type, columns.durationSeconds[row]!);
    }
    if (this.#hasJustFailed(session, row)) this.#nodes.markFailing(node);
    this.#count(session, row, node, SESSION_STATUSES.indexOf(session.status), type);
    return true;
  }

  /** Counts a session whose record can't be read. */
  addUnreadable(): void {
    this.#nodes.countUnassigned();
  }

  /**
   * Ends a walk at `at` whose first page was observed at `observedFrom`. Its counts replace the previous ones. Those of a
   * cut walk do so only if there are no others, or after {@link CUT_WALKS_MAX} cut walks in a row. Bytes and durations
   * always count. Runs in steps of about a millisecond, so that the caller can do other work in between; until the last
   * one, the previous counts stay.
   */
  *endWalk(end: SessionWalkEnd, at: MonotonicMs, observedFrom = at): Steps<void> {
    const complete = end === "complete";
    if (end === "failed") this.#undoBegin();
    else this.#cutWalks = end === "cut" ? this.#cutWalks + 1 : 0;
    if (complete) yield* this.#removeEnded();
    else yield* this.#table.sweep((row) => this.#walk - this.#table.columns.walk[row]! > WALKS_REMEMBERED);
    const isAccepted = end === "cut" ? this.#view === null || this.#cutWalks >= CUT_WALKS_MAX : end !== "failed";
    if (isAccepted) yield* this.#nodes.acceptWalk(complete);
    else yield* this.#nodes.forgetIdle();
    const accepted = isAccepted ? yield* this.#acceptedCounts({ complete, settledAt: at, observedFrom }) : this.#view;
    if (accepted === null) return;
    this.#departed.clear();
    this.#view = {
      ...accepted,
      failedListed: this.#failedListed,
      nodes: this.#nodes.view(),
      durations: this.#durations.copy(),
    };
  }

  /** A walk that read nothing is not counted: it does not say which sessions the list no longer shows. */
  #undoBegin(): void {
    this.#walk--;
    this.#recentWalks = this.#recentWalks.slice(0, -1);
  }

  *#acceptedCounts(walk: Pick<SessionSummary, "complete" | "settledAt" | "observedFrom">) {
    const countries = yield* this.#countries.finish();
    const customers = yield* rankCustomers(yield* this.#customers.finish());
    return { ...walk, counts: this.#counts, countries, customers };
  }

  #count(session: SessionRecord, row: number, node: number | null, status: number, type: number): void {
    this.#counts[status * SESSION_TYPES.length + type]!++;
    this.#countries.add(session.country ?? "", 1);
    if (session.customerId !== null) this.#customers.add(session.customerId, 1);
    if (session.nodeId !== null) this.#nodes.count(session.nodeId, node, status, this.#isRecent(session, row));
    // A session that is being established may not have a node yet.
    else if (session.status !== "connecting") this.#nodes.countUnassigned();
  }

  /**
   * Returns whether the record of an open session, whose duration and bytes only grow, is older than the last one, for
   * example from a cache. If its bytes were stored, the next record would count bytes again.
   */
  #isOlder({ durationSeconds, bytesSent, bytesReceived }: SessionRecord, row: number): boolean {
    const { columns } = this.#table;
    if (isAbove(bytesSent, columns.sent[row]!) || isAbove(bytesReceived, columns.received[row]!)) return false;
    // The stored duration is rounded.
    return Math.fround(durationSeconds ?? Number.NaN) < columns.durationSeconds[row]!;
  }

  /** `initial` is the number of bytes assumed before the first report, or NaN if unknown. */
  #addBytes({ bytesSent, bytesReceived }: SessionRecord, row: number, node: number | null, initial: number): void {
    const sent = byteGain(this.#table.columns.sent, row, bytesSent, initial);
    const received = byteGain(this.#table.columns.received, row, bytesReceived, initial);
    if (sent + received > 0) this.#nodes.addBytes(node, sent, received);
  }

  #isRecent(session: SessionRecord, row: number): boolean {
    return (
      !endedStatuses.has(session.status) || this.#hasEndedWithin(session, row, RECENT_SESSION_MS, this.#lastOldWalk)
    );
  }

  #hasJustFailed(session: SessionRecord, row: number): boolean {
    return (
      failedStatuses.has(session.status) &&
      this.#lastCompleteWalk > 0 &&
      this.#hasEndedWithin(session, row, FAILING_MS_MAX, this.#lastCompleteWalk)
    );
  }

  /**
   * Returns whether the session ended within `ms` before the walk or, if its times are missing, whether a walk after
   * `lastOldWalk` was the first to show that it had ended.
   */
  #hasEndedWithin(session: SessionRecord, row: number, ms: DurationMs, lastOldWalk: number): boolean {
    if (this.#table.columns.endedWalk[row]! <= lastOldWalk) return false;
    if (session.startedAtMs === null || session.durationSeconds === null) return this.#lastCompleteWalk > 0;
    return session.startedAtMs + session.durationSeconds * SECOND_MS >= this.#walkBeganAt - ms;
  }

  /** Removes the sessions that have left the list, and counts their durations. Called after a complete walk. */
  *#removeEnded(): Steps<void> {
    yield* this.#table.sweep((row) => {
      const { walk, absences, endedWalk, type, durationSeconds } = this.#table.columns;
      if (walk[row] === this.#walk) return false;
      absences[row]!++;
      if (absences[row]! < ABSENCES_MAX) return false;
      if (endedWalk[row] === 0) this.#durations.observe(type[row]!, durationSeconds[row]!);
      return true;
    });
    this.#lastCompleteBeganAt = this.#walkBeganAt;
    this.#lastCompleteWalk = this.#walk;
  }
}

const createCounts = () => new Float64Array(SESSION_STATUSES.length * SESSION_TYPES.length);

/** Returns whether `value` is stated and above `stored`, or none is stored. */
const isAbove = (value: number | null, stored: number): boolean => value !== null && !(value <= stored);

/**
 * Stores `value`, and returns its increase over the stored value, or over `initial` if none is stored. Returns 0 if the
 * value is smaller, or if none is stored and `initial` is NaN. If the value is missing, returns 0 and keeps the stored
 * one.
 */
function byteGain(column: Float64Array, row: number, value: number | null, initial: number): number {
  if (value === null) return 0;
  const stored = Number.isNaN(column[row]!) ? initial : column[row]!;
  column[row] = value;
  return Math.max(0, value - stored) || 0;
}

/**
 * Sorts by sessions, most first, then by id, so that the order does not depend on that of the list. Customers with the
 * same number of sessions are sorted in one step.
 */
function* rankCustomers(customers: ReadonlyMap<string, number>) {
  const idsByCount = new Map<number, string[]>();
  yield* eachInSteps(customers, ([customerId, sessions]) => {
    const ids = idsByCount.get(sessions);
    if (ids === undefined) idsByCount.set(sessions, [customerId]);
    else ids.push(customerId);
  });
  const ranked: { readonly customerId: string; readonly sessions: number }[] = [];
  for (const [sessions, ids] of [...idsByCount].sort(([a], [b]) => b - a)) {
    for (const customerId of ids.sort()) ranked.push({ customerId, sessions });
    yield;
  }
  return ranked;
}
