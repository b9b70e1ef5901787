import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { allowedMissing, missingRecords, WALKS_TO_RECOVER, type WalkCounts } from "../walk-completeness.ts";

/** Share of the sessions that a complete walk may miss, since they come and go during the walk. */
const MISSING_MAX: Share = 0.01;
/** Maximum share that it may miss in addition, if as many sessions started during the walk or shortly before it. */
const STARTED_MAX: Share = 0.1;

/** How far in the future a session's start may be. A later one is ignored, because it means that the clocks differ. */
const AHEAD_MS_MAX: DurationMs = MINUTE_MS;

/** A walk that shows less than this share of the sessions is suspect. */
const SHOWN_MIN: Share = 0.5;
/** Lists with fewer sessions may really lose half of them at once. */
const TRUSTED_MIN = 20;
/** After this many suspect walks in a row the next one is trusted, since the sessions may really be gone. */
const SUSPECT_WALKS_MAX = 10;

/** Why a walk that reached the end of the list is known not to show all sessions. */
type SessionWalkFailure = "page_failed" | "refused";

/** Sessions that walks may miss on an operator's command. */
export interface AcceptedSessions {
  readonly missing: number;
  /** Total of the list at that time. */
  readonly total: number;
}

/** Decides which walks of the sessions show enough of them. */
export class SessionWalkHistory {
  #accepted: AcceptedSessions | null = null;
  #recoveredWalks = 0;
  #beganAt: EpochMs = 0;
  /** The service's clock when the monotonic clock showed 0. */
  #clockOffset: EpochMs = 0;
  #lastWalkMs: DurationMs = 0;
  /** Sessions that started during the walk or, before it, within a period as long as the previous walk. */
  #started = 0;
  #acceptable: AcceptedSessions | null = null;
  /** Sessions that the last trusted walk showed. */
  #trusted: number;
  #suspectWalks = 0;

  /** `trusted` is how many sessions the last complete walk of an earlier process showed, or 0 if there was none. */
  constructor(trusted = 0) {
    this.#trusted = trusted;
  }

  /** Returns whether walks may miss sessions because an operator accepted it. */
  acceptsMissing(): boolean {
    return this.#accepted !== null;
  }

  /** Accepts that walks miss this many sessions, or the same share of a larger list. Null accepts none. */
  acceptMissing(accepted: AcceptedSessions | null): void {
    this.#accepted = accepted?.missing === 0 ? null : accepted;
    this.#recoveredWalks = 0;
  }

  /** Returns the missing sessions of the last walk that an operator can accept, or null if there are none. */
  acceptable(): AcceptedSessions | null {
    return this.#acceptable;
  }

  /** Returns how many sessions the last trusted walk showed, or 0 before the first one. */
  trusted(): number {
    return this.#trusted;
  }

  /** Begins a walk at `at`, which is `serviceNow` on the service's clock. */
  begin(serviceNow: EpochMs, at: MonotonicMs): void {
    this.#beganAt = serviceNow;
    this.#clockOffset = serviceNow - at;
    this.#started = 0;
  }

  /** Records that the walk showed a session at `at`. `startedAt` is on the service's clock, or null if unknown. */
  recordShown(startedAt: EpochMs | null, at: MonotonicMs): void {
    if (startedAt === null || startedAt < this.#beganAt - this.#lastWalkMs) return;
    if (startedAt <= at + this.#clockOffset + AHEAD_MS_MAX) this.#started++;
  }

  /**
   * Ends a walk that took `tookMs` and was not cut. Returns whether it shows enough sessions. Sessions that are missing
   * because of a failure exist, so they are not explained by changes during the walk and can't be accepted.
   */
  end(counts: WalkCounts, failure: SessionWalkFailure | null, tookMs: DurationMs): boolean {
    this.#lastWalkMs = tookMs;
    const missing = Math.max(0, missingRecords(counts));
    // A walk need not show sessions that started after it began, nor those that moved because others ended.
    const changed = failure === null ? Math.min(this.#started, allowedMissing(counts, STARTED_MAX)) : 0;
    const allowed = allowedMissing(counts, MISSING_MAX) + changed;
    this.#acceptable = failure === null && missing > allowed ? { missing, total: counts.total } : null;
    this.#recoveredWalks = missing <= allowed ? this.#recoveredWalks + 1 : 0;
    if (this.#recoveredWalks >= WALKS_TO_RECOVER) this.#accepted = null;
    const accepted = failure === "refused" ? null : this.#accepted;
    return missing <= allowed + (accepted === null ? 0 : accepted.missing * Math.max(1, counts.total / accepted.total));
  }

  /**
   * Rejects walks that suddenly show far fewer sessions, because a service may list and count too few for some minutes.
   * `stated` is the number of sessions in the statistics, if they were read since the previous walk, or else null; a
   * walk that it confirms is trusted. Returns how many sessions the walk misses, or 0 if it is trusted.
   */
  dropped(seen: number, stated: number | null): number {
    const isDrop = this.#trusted >= TRUSTED_MIN && seen < this.#trusted * SHOWN_MIN;
    const isConfirmed = stated !== null && seen >= stated * SHOWN_MIN;
    if (isDrop && !isConfirmed && this.#suspectWalks < SUSPECT_WALKS_MAX) {
      this.#suspectWalks++;
      return this.#trusted - seen;
    }
    this.#trusted = seen;
    this.#suspectWalks = 0;
    return 0;
  }

  /** Ends a walk that was stopped before the end of the list. */
  cut(): void {
    this.#acceptable = null;
  }
}
