import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { NODE_STATUSES, type NodeStatus } from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../model/session.ts";
import type { Fleet, SessionSummary } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { remainingAtLeast } from "../../rate-limit/limit-headers.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import type { RemediationView } from "../../remediation/status/views.ts";
import { type StatusSnapshot, statusLine } from "../../web/api/status-views.ts";
import { createActivityReporter } from "./remediation-lines.ts";

/** One line for a person, and what it means for the node it speaks of. */
export interface ReportLine {
  readonly text: string;
  readonly tone: "good" | "bad" | "change" | "summary";
}

/** Turns what the daemon sees into lines for a person. */
export interface ConsoleReporter {
  /** Lines on what is new since the last call. */
  report(statusSnapshot: StatusSnapshot, remediation: RemediationView): ReportLine[];
}

/** A summary comes this often. */
const SUMMARY_INTERVAL_MS: DurationMs = 15 * SECOND_MS;
/** Changes of nodes told one by one at a time; the rest is counted. */
const CHANGES_LISTED_MAX = 8;

/** `startedAt`: from when the lines count their time. */
export function createConsoleReporter(startedAt: MonotonicMs): ConsoleReporter {
  const statuses = new Map<string, number>();
  const activity = createActivityReporter();
  let summaryAt = startedAt;

  function statusChanges(fleet: Fleet): ReportLine[] {
    const lines: ReportLine[] = [];
    for (let slot = 0; slot < fleet.slots; slot++) {
      const id = fleet.ids[slot]!;
      if (id === "") continue;
      const before = statuses.get(id);
      const now = fleet.status[slot]!;
      statuses.set(id, now);
      if (before === undefined || before === now) continue;
      const place = fleet.locations[fleet.locationIndex[slot]!];
      const text = `${fleet.names[slot]} (${id}, ${place?.region}): ${NODE_STATUSES[before]} → ${NODE_STATUSES[now]}`;
      lines.push({ text, tone: toneOf(NODE_STATUSES[now]!) });
    }
    if (lines.length <= CHANGES_LISTED_MAX) return lines;
    const rest: ReportLine = { text: `and ${lines.length - CHANGES_LISTED_MAX} more nodes changed`, tone: "change" };
    return [...lines.slice(0, CHANGES_LISTED_MAX), rest];
  }

  return {
    report(statusSnapshot, remediation) {
      const elapsed = formatElapsed(statusSnapshot.monotonic - startedAt);
      const lines = statusSnapshot.snapshot === null ? [] : statusChanges(statusSnapshot.snapshot.fleet);
      const fleet = statusSnapshot.snapshot?.fleet;
      lines.push(...activity.report(remediation, (node) => fleet?.names[fleet.ids.indexOf(node)] ?? "?"));
      const isKnown = statusSnapshot.snapshot !== null && statusSnapshot.snapshot.fleet.walkedAt !== null;
      if (
        statusSnapshot.monotonic >= summaryAt &&
        (isKnown || statusSnapshot.monotonic >= startedAt + SUMMARY_INTERVAL_MS)
      ) {
        summaryAt = statusSnapshot.monotonic + SUMMARY_INTERVAL_MS;
        lines.push({ text: `${statusLine(statusSnapshot)} | ${budgetLine(statusSnapshot)}`, tone: "summary" });
      }
      return lines.map(({ text, tone }) => ({ text: `${elapsed}  ${text}`, tone }));
    },
  };
}

function toneOf(status: NodeStatus): ReportLine["tone"] {
  if (status === "online") return "good";
  return status === "offline" ? "bad" : "change";
}

function budgetLine({ ledger, snapshot }: StatusSnapshot): string {
  const detailed = snapshot?.fleet.detailedAt.reduce((count, at) => count + (Number.isNaN(at) ? 0 : 1), 0) ?? 0;
  const [node, session] = CATEGORIES.map((category) => remainingAtLeast(ledger.accounts[category].headers) ?? "?");
  const seen = `${countActiveSessions(snapshot?.sessions ?? null)} active sessions, ${detailed} nodes in detail`;
  return `${seen} | ${ledger.monthUsed} calls; left now: ${node} node, ${session} session`;
}

/** What is not known yet is no zero. */
function countActiveSessions(sessions: SessionSummary | null): number | "?" {
  if (sessions === null) return "?";
  const begin = SESSION_STATUSES.indexOf("active") * SESSION_TYPES.length;
  return sessions.counts.subarray(begin, begin + SESSION_TYPES.length).reduce((sum, count) => sum + count, 0);
}

function formatElapsed(ms: DurationMs): string {
  const total = Math.floor(ms / SECOND_MS);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(total / 3_600))}:${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
}
