import type { DurationMs } from "../../base/duration.ts";
import type { Action, NodeHold } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { Pause } from "../../model/remediation/operator-command.ts";
import type { EpochMs } from "../../model/time.ts";
import type { RemediationRecords } from "../../policy/remediation-records.ts";
import { PAUSED } from "../operator-holds.ts";

/** By how much the journal's clock advanced, and which of its earlier times that concerns. */
export interface ClockAdvance {
  readonly byMs: DurationMs;
  /** Pauses and holds are moved if they began since then, which may be before a crash. */
  readonly behindSince: EpochMs;
  /** Approvals are moved if they were given since then. After a crash they expire early rather than late. */
  readonly openedAt: EpochMs;
}

/** Returns the rows whose times {@link movedTimes} may move. */
export const rowsWithTimes = (records: RemediationRecords): readonly JournalChange[] => [
  { kind: "fact", key: PAUSED, value: records.fact(PAUSED) },
  ...records.allHolds().map((row) => ({ kind: "hold", row }) as const),
  ...[...records.actions()].map((row) => ({ kind: "action", row }) as const),
];

/**
 * Returns those of the rows that have to be moved with the journal's clock, so that what began while it was behind keeps
 * its duration: pauses and holds that end by themselves, approvals, and requests for one.
 */
export const movedTimes = (rows: readonly JournalChange[], advance: ClockAdvance): JournalChange[] =>
  rows.flatMap((change): JournalChange[] => {
    if (change.kind === "hold") return movedHold(change.row, advance).map((row) => ({ kind: "hold", row }));
    if (change.kind === "action") return movedApproval(change.row, advance).map((row) => ({ kind: "action", row }));
    if (change.kind !== "fact" || change.key !== PAUSED || change.value === null) return [];
    const pause = JSON.parse(change.value) as Pause;
    return movedSpan(pause, advance).map((moved) => ({ ...change, value: JSON.stringify(moved) }));
  });

/** The `until` of a given-up node is when it was released, and its retries are counted from there. */
const movedHold = (hold: NodeHold, advance: ClockAdvance): NodeHold[] =>
  hold.kind === "given_up" ? [] : movedSpan(hold, advance);

function movedSpan<Span extends Pick<Pause, "at" | "until">>(span: Span, { byMs, behindSince }: ClockAdvance): Span[] {
  const { at, until = null } = span;
  return until === null || at < behindSince ? [] : [{ ...span, at: at + byMs, until: until + byMs }];
}

function movedApproval(action: Action, { byMs, openedAt }: ClockAdvance): Action[] {
  const { state, createdAt, approvedAt } = action;
  if (state === "awaiting" && createdAt >= openedAt) return [{ ...action, createdAt: createdAt + byMs }];
  if (state !== "approved" || approvedAt === undefined || approvedAt < openedAt) return [];
  return [{ ...action, approvedAt: approvedAt + byMs }];
}
