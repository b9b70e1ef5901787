import { type DurationMs, formatSecondsLeft } from "../base/duration.ts";
import type { NodeHold } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { OperatorCommandName, Pause } from "../model/remediation/operator-command.ts";
import { type EpochMs, formatTime } from "../model/time.ts";
import { withOwnership } from "../policy/guards/node-guards.ts";
import type { RemediationRecords } from "../policy/remediation-records.ts";
import type { EpisodeContext } from "./context.ts";
import type { JournalClock } from "./state/journal-clock.ts";

/** Key of the fact that holds the {@link Pause}. Absent if there is none. */
export const PAUSE_FACT = "remediation.pause";

/** Returns the pause in force, or null if there is none or it has expired. */
export function pauseAt(records: RemediationRecords, now: EpochMs): Pause | null {
  const pause = recordedPause(records);
  return pause === null || (pause.until ?? now + 1) <= now ? null : pause;
}

/** Returns the pause in the journal, which may have expired, or null if there is none. */
export const recordedPause = (records: RemediationRecords): Pause | null => records.jsonFact<Pause>(PAUSE_FACT);

/**
 * Formats when a pause or hold ends: at a time or with `command`, or only with `command`. While the journal's clock may
 * be behind, the time is relative.
 */
export function formatEnd({ until = null }: Pick<Pause, "until">, command: string, clock: JournalClock): string {
  if (until === null) return command;
  const end = clock.behindSince() === null ? formatTime(until) : `${formatSecondsLeft(until - clock.now())} from now`;
  return `${end} or ${command}`;
}

/**
 * Returns the hold of kind `ownership` on a node, which `hold` either is or, as a hold by an operator, has in addition;
 * undefined if there is none.
 */
export const ownershipOf = (hold: NodeHold | null): NodeHold["ownership"] =>
  hold?.kind === "ownership" && hold.until !== null
    ? { at: hold.at, until: hold.until, reason: hold.reason }
    : hold?.ownership;

/**
 * Returns what is in force of a hold at `now`: the hold itself or, if it has ended, the one of kind `ownership` that it
 * has in addition; null if neither is.
 */
const holdAt = (hold: NodeHold, now: EpochMs): NodeHold | null =>
  withOwnership(hold).find(({ until }) => until === null || until > now) ?? null;

/** Returns what is in force of each hold at `now`, without those of which nothing is. */
export const holdsAt = (holds: readonly NodeHold[], now: EpochMs): readonly NodeHold[] =>
  holds.flatMap((hold) => holdAt(hold, now) ?? []);

type ExpiryDeps = Pick<EpisodeContext, "log" | "metrics" | "remediationState">;

/** Ends the pause and the holds of operators that have expired. Journals, logs and counts each. */
export function endExpiredHolds({ remediationState, metrics, log }: ExpiryDeps): void {
  const { records } = remediationState;
  const now = remediationState.now();
  const commandRow = (command: OperatorCommandName, node: string | null, detail: string): JournalChange => ({
    kind: "command",
    row: { at: now, command, operator: null, node, action: null, detail },
  });
  const pause = recordedPause(records);
  if (pause !== null && pauseAt(records, now) === null) {
    const detail = `the pause${byOperator(pause)} has expired`;
    remediationState.record([{ kind: "fact", key: PAUSE_FACT, value: null }, commandRow("resume", null, detail)]);
    metrics.inc("proxywarden_operator_commands_total", { command: "resume", source: "expiry" });
    log.info({ operator: pause.operator, reason: pause.reason }, "pause expired");
  }
  for (const hold of records.allHolds()) {
    const { node, policy, kind, until } = hold;
    if (kind !== "held" || until === null || until > now) continue;
    const detail = `the hold${byOperator(hold)} has expired`;
    const row = holdAt(hold, now);
    const next: JournalChange = row === null ? { kind: "hold_gone", node, policy } : { kind: "hold", row };
    remediationState.record([next, commandRow("release", node, detail)]);
    metrics.inc("proxywarden_operator_commands_total", { command: "release", source: "expiry" });
    log.info({ node, operator: hold.operator, reason: hold.reason }, "hold expired");
  }
}

const byOperator = ({ operator }: Pick<Pause, "operator">): string => (operator === undefined ? "" : ` by ${operator}`);

/** Returns the time until the next pause or hold of an operator expires, or null if none does. */
export function nextExpiryMs({ remediationState }: ExpiryDeps): DurationMs | null {
  const { records } = remediationState;
  const ends = [
    recordedPause(records)?.until ?? null,
    ...records.allHolds().map(({ kind, until }) => (kind === "held" ? until : null)),
  ].filter((end) => end !== null);
  return ends.length === 0 ? null : Math.max(0, Math.min(...ends) - remediationState.now());
}
