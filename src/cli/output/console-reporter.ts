import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { NODE_STATUSES, type NodeId, type NodeStatus } from "../../model/node.ts";
import { type Action, type Decision, isUnfinished } from "../../model/remediation/episode.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import type { EventLog } from "../../web/api/event-log.ts";
import { summarizeTimes } from "../../web/api/fleet-columns.ts";
import { actionView, decisionView } from "../../web/api/row-views.ts";
import { type StatusSnapshot, sessionsByStatus, statusLine } from "../../web/api/status-views.ts";
import { evidenceText, requestLabel } from "../../web/ui/page/activity/activity-lines.ts";
import { countNoun, formatCount } from "../../web/ui/page/format.ts";
import { formatLength, type Tone } from "./text.ts";

/** A line of output, and the meaning of its color, or null if it has none. */
interface ReportLine {
  readonly text: string;
  readonly tone: Tone | null;
}

/** Interval between two summaries. */
const SUMMARY_INTERVAL_MS: DurationMs = 15 * SECOND_MS;
/** Maximum number of changed nodes that one report lists. The others are only counted. */
const CHANGES_LISTED_MAX = 8;

/** Creates a reporter, which turns the daemon's state into lines of text. Lines show the time since `startedAt`. */
export function createConsoleReporter(startedAt: MonotonicMs) {
  const statuses = new Map<string, number>();
  const reportActivity = createActivityReporter();
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
      const location = fleet.locations[fleet.locationIndex[slot]!];
      const text = `${fleet.name[slot]} (${id}, ${location?.region}): ${NODE_STATUSES[before]} → ${NODE_STATUSES[now]}`;
      lines.push({ text, tone: toneOf(NODE_STATUSES[now]!) });
    }
    if (lines.length <= CHANGES_LISTED_MAX) return lines;
    const rest = `and ${countNoun(lines.length - CHANGES_LISTED_MAX, "more node")} changed`;
    return [...lines.slice(0, CHANGES_LISTED_MAX), { text: rest, tone: "warning" }];
  }

  return {
    /** Returns lines about what is new since the last call. */
    report(statusSnapshot: StatusSnapshot, eventLog: EventLog): ReportLine[] {
      const { monotonic: now, snapshot } = statusSnapshot;
      const fleet = snapshot?.fleet;
      const elapsed = formatElapsed(now - startedAt);
      const lines = fleet === undefined ? [] : statusChanges(fleet);
      lines.push(...reportActivity(eventLog, (node) => fleet?.name[fleet.ids.indexOf(node)] ?? "?"));
      const isKnown = fleet !== undefined && fleet.walkedAt !== null;
      if (now >= summaryAt && (isKnown || now >= startedAt + SUMMARY_INTERVAL_MS)) {
        summaryAt = now + SUMMARY_INTERVAL_MS;
        lines.push({ text: `${statusLine(statusSnapshot)} | ${budgetLine(statusSnapshot)}`, tone: null });
      }
      return lines.map(({ text, tone }) => ({ text: `${elapsed}  ${text}`, tone }));
    },
  };
}

function toneOf(status: NodeStatus): ReportLine["tone"] {
  if (status === "online") return "good";
  return status === "offline" ? "bad" : "warning";
}

function budgetLine({ ledger, snapshot }: StatusSnapshot): string {
  const detailed = snapshot === null ? 0 : summarizeTimes(snapshot.fleet.detailedAt).count;
  const [node, session] = CATEGORIES.map((category) =>
    formatCount(ledger.categories[category].stated.remainingAtLeast()),
  );
  const active = formatCount(snapshot?.sessions ? sessionsByStatus(snapshot.sessions).active : null);
  const data = `${active} active sessions, details of ${countNoun(detailed, "node")}`;
  return `${data} | ${countNoun(ledger.monthUsed, "call")}; calls left: ${node} for nodes, ${session} for sessions`;
}

function formatElapsed(ms: DurationMs): string {
  const total = Math.floor(ms / SECOND_MS);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(total / 3_600))}:${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
}

/** Maximum number of events in one report. If there are more, only the latest ones are reported. */
const EVENTS_MAX = 200;

/** Creates a function that reports decisions and actions. */
function createActivityReporter() {
  let reported = 0;
  /** The last line about each action that has not ended. Not every change of an action changes its line. */
  const lines = new Map<string, string>();

  function changedLine(action: Action, nameOf: (node: NodeId) => string): ReportLine | null {
    const line = formatAction(action, nameOf);
    const isNew = line !== null && lines.get(action.id) !== line.text;
    if (isNew) lines.set(action.id, line.text);
    if (!isUnfinished(action)) lines.delete(action.id);
    return isNew ? line : null;
  }

  /** Returns lines about what is new since the last call. `nameOf` returns a node's name. */
  return (eventLog: EventLog, nameOf: (node: NodeId) => string): ReportLine[] => {
    const { rows } = eventLog.after(reported, EVENTS_MAX);
    reported = eventLog.lastNumber();
    return rows.flatMap(({ event }) => {
      if (event.kind === "decision") return formatDecision(event.row, nameOf);
      return event.kind === "action" ? (changedLine(event.row, nameOf) ?? []) : [];
    });
  };
}

function formatDecision(decision: Decision, nameOf: (node: NodeId) => string): ReportLine {
  const { policy, node, verdict, mode, blockers } = decision;
  const reasons = blockers.map(({ reason, detail }) => `${reason} (${detail})`).join("; ");
  const why = verdict === "act" ? evidenceText(decisionView(decision).evidence) : reasons;
  const dry = mode === "dry_run" ? " (dry run)" : "";
  return {
    text: `${policy}: ${verdict === "act" ? "acts on" : "holds"} ${nameOf(node)} (${node})${dry}: ${why}`,
    tone: "warning",
  };
}

function formatAction(action: Action, nameOf: (node: NodeId) => string): ReportLine | null {
  const { id, policy, node, state, outcome, dryRun, detail, proof, sentAt, endedAt } = action;
  const what = `${policy}: ${requestLabel(actionView(action).request)} of ${nameOf(node)} (${id})`;
  if (dryRun) return state === "sent" ? { text: `${what}: not sent (dry run)`, tone: "warning" } : null;
  switch (state) {
    case "sent":
      return { text: `${what}: ${action.inDoubt ? `in doubt: ${detail}` : "sent"}`, tone: "warning" };
    case "withdrawn":
      return { text: `${what}: withdrawn: ${detail}`, tone: "warning" };
    case "ended": {
      const took = sentAt === null || endedAt === null ? "" : ` after ${formatLength(endedAt - sentAt)}`;
      const shown = proof === null ? "" : `, proof: ${proof}`;
      const cause = outcome === "refused" || outcome === "failed" || outcome === "in_doubt" ? `: ${detail}` : "";
      return { text: `${what}: ${outcome}${took}${shown}${cause}`, tone: outcome === "verified" ? "good" : "bad" };
    }
    default:
      return null;
  }
}
