import type { DurationMs } from "../../base/duration.ts";
import type { Action, NodeHold } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { Pause } from "../../model/remediation/operator-command.ts";
import type { EpochMs } from "../../model/time.ts";
import type { RemediationRecords } from "../../policy/remediation-records.ts";
import { COOLDOWN_FACT } from "../evaluation/inventory-trust.ts";
import { PAUSE_FACT, recordedPause } from "../operator-holds.ts";

/** By how much the journal's clock advanced, and which of its earlier times that concerns. */
export interface ClockAdvance {
  readonly byMs: DurationMs;
  /** Pauses, holds, incidents and what the breaker counted are moved if they began since then, which may be before a crash. */
  readonly behindSince: EpochMs;
  /** Approvals are moved if they were given since then. After a crash they expire early rather than late. */
  readonly openedAt: EpochMs;
}

/** Returns a time, moved by the advance unless it is from before the clock was behind. */
export const movedTime = (at: EpochMs, { byMs, behindSince }: ClockAdvance): EpochMs =>
  at < behindSince ? at : at + byMs;

/**
 * Returns the rows to move with the journal's clock, so that what began while it was behind keeps its duration, and its
 * place in the order of commands: pauses, holds, the cooldown after untrusted data, approvals, and requests for one. The
 * `until` of a given-up node is when it was released, and its retries are counted from there.
 */
export function movedTimes(records: RemediationRecords, advance: ClockAdvance): readonly JournalChange[] {
  const pause = recordedPause(records);
  const pauses = pause === null ? [] : movedSpan(pause, advance);
  const holds = records.allHolds().filter(({ kind }) => kind !== "given_up");
  return [
    ...pauses.map((moved) => ({ kind: "fact", key: PAUSE_FACT, value: JSON.stringify(moved) }) as const),
    ...movedCooldown(records, advance),
    ...holds.flatMap((hold) => movedHold(hold, advance)).map((row) => ({ kind: "hold", row }) as const),
    ...[...records.actions()]
      .flatMap((action) => movedApproval(action, advance))
      .map((row) => ({ kind: "action", row }) as const),
  ];
}

/** A cooldown that began before the clock was behind lasts longer then, but no longer than its full duration from now. */
function movedCooldown(records: RemediationRecords, advance: ClockAdvance): JournalChange[] {
  const end = Number(records.fact(COOLDOWN_FACT) ?? Number.NaN);
  const moved = movedTime(end, advance);
  return Number.isNaN(end) || moved === end ? [] : [{ kind: "fact", key: COOLDOWN_FACT, value: String(moved) }];
}

function movedHold(hold: NodeHold, advance: ClockAdvance): NodeHold[] {
  const [span] = movedSpan(hold, advance);
  const [ownership] = hold.ownership === undefined ? [] : movedSpan(hold.ownership, advance);
  return span === undefined && ownership === undefined ? [] : [{ ...(span ?? hold), ...(ownership && { ownership }) }];
}

function movedSpan<Span extends Pick<Pause, "at" | "until">>(span: Span, { byMs, behindSince }: ClockAdvance): Span[] {
  const { at, until = null } = span;
  return at < behindSince ? [] : [{ ...span, at: at + byMs, until: until === null ? null : until + byMs }];
}

function movedApproval(action: Action, { byMs, openedAt }: ClockAdvance): Action[] {
  const { state, createdAt, approvedAt } = action;
  if (state === "awaiting" && createdAt >= openedAt) return [{ ...action, createdAt: createdAt + byMs }];
  if (state !== "approved" || approvedAt === undefined || approvedAt < openedAt) return [];
  return [{ ...action, approvedAt: approvedAt + byMs }];
}
