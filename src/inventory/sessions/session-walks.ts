import type { DurationMs } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { EpochMs } from "../../model/time.ts";
import { allowedMissing, missingRecords, WALKS_TO_RECOVER, type WalkCounts } from "../walk-completeness.ts";

/** Share of the sessions that a complete walk may miss, since they come and go during the walk. */
const MISSING_MAX: Share = 0.01;
/** Share that it may miss in addition if as many sessions start in the time that a walk takes. */
const STARTED_MAX: Share = 0.1;

/** Sessions that walks may miss on an operator's command. */
export interface AcceptedSessions {
  readonly missing: number;
  /** Total of the list at that time. */
  readonly total: number;
}

const NONE_ACCEPTED: AcceptedSessions = { missing: 0, total: 0 };

/** Decides which walks of the sessions show enough of them. */
export class SessionWalkHistory {
  #accepted = NONE_ACCEPTED;
  #recoveredWalks = 0;
  #beganAt: EpochMs = 0;
  #lastWalkMs: DurationMs = 0;
  /** Sessions that started during the walk, or as long before it as the last walk took. */
  #started = 0;
  #missed: AcceptedSessions | null = null;

  /** Accepts that walks miss this many sessions, or the same share of a larger list. */
  acceptMissing(accepted: AcceptedSessions): void {
    this.#accepted = accepted;
    this.#recoveredWalks = 0;
  }

  /** Returns what the last walk missed, or null if it was cut or refused. */
  missed(): AcceptedSessions | null {
    return this.#missed;
  }

  /** Begins a walk. `serviceNow` is the service's clock. */
  begin(serviceNow: EpochMs): void {
    this.#beganAt = serviceNow;
    this.#started = 0;
  }

  /** Records that the walk showed a session. */
  recordShown(startedAt: EpochMs | null): void {
    if (startedAt !== null && startedAt >= this.#beganAt - this.#lastWalkMs) this.#started++;
  }

  /**
   * Ends a walk that took `tookMs` and was not cut. Returns whether it shows enough sessions. If the service refused to
   * show all of them, no missing ones are accepted, since they exist.
   */
  end(counts: WalkCounts, isRefused: boolean, tookMs: DurationMs): boolean {
    this.#lastWalkMs = tookMs;
    const missing = Math.max(0, missingRecords(counts));
    this.#missed = isRefused ? null : { missing, total: counts.total };
    // A walk need not show sessions that started after it began, nor those that moved because others ended.
    const changed = Math.min(this.#started, allowedMissing(counts, STARTED_MAX));
    const allowed = allowedMissing(counts, MISSING_MAX) + changed;
    this.#recoveredWalks = missing <= allowed ? this.#recoveredWalks + 1 : 0;
    if (this.#recoveredWalks >= WALKS_TO_RECOVER) this.#accepted = NONE_ACCEPTED;
    const { missing: accepted, total } = isRefused ? NONE_ACCEPTED : this.#accepted;
    return missing <= allowed + (total === 0 ? 0 : accepted * Math.max(1, counts.total / total));
  }

  /** Ends a walk that was stopped before the end of the list. */
  cut(): void {
    this.#missed = null;
  }
}
