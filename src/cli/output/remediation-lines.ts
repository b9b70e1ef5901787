import { formatDuration, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, ActionRequest } from "../../model/remediation/episode.ts";
import type { RemediationView } from "../../remediation/status/views.ts";
import type { ReportLine } from "./console-reporter.ts";

/** Turns decisions and actions into console lines. */
export interface ActivityReporter {
  /** Lines on what is new since the last call; `nameOf` gives a node's name. */
  report(remediation: RemediationView, nameOf: (node: NodeId) => string): ReportLine[];
}

/** Rows looked at each time: more than any second of a demo brings. */
const ROWS_PER_POLL = 200;
/** What is remembered as told, at most: the rows that are looked at are always among them. */
const REPORTED_KEYS_MAX = 5_000;

/** Creates a reporter that has reported nothing yet. */
export function createActivityReporter(): ActivityReporter {
  const reportedKeys = new Set<string>();

  function isNew(key: string): boolean {
    if (reportedKeys.has(key)) return false;
    reportedKeys.add(key);
    if (reportedKeys.size > REPORTED_KEYS_MAX)
      for (const oldest of [...reportedKeys].slice(0, REPORTED_KEYS_MAX / 2)) reportedKeys.delete(oldest);
    return true;
  }

  return {
    report(remediation, nameOf) {
      const decisions = remediation
        .decisions({ limit: ROWS_PER_POLL })
        .toReversed()
        .filter(({ at, policy, node, verdict }) => isNew(`${at} ${policy} ${node} ${verdict}`))
        .map((decision) => ({ at: decision.at, told: formatDecision(decision, nameOf) }));
      const actions = remediation
        .actions({ limit: ROWS_PER_POLL })
        .toReversed()
        .filter(({ id, state, outcome }) => isNew(`${id} ${state} ${outcome}`))
        .flatMap((action) => {
          const line = formatAction(action, nameOf);
          return line === null ? [] : [{ at: action.endedAt ?? action.sentAt ?? action.createdAt, told: line }];
        });
      return [...decisions, ...actions].sort((a, b) => a.at - b.at).map((each) => each.told);
    },
  };
}

function formatDecision(
  { policy, node, verdict, mode, blockers, evidence }: Decision,
  nameOf: (node: NodeId) => string,
) {
  const who = `${nameOf(node)} (${node})`;
  const why = Object.entries(evidence.fields)
    .map(([field, value]) => `${field} ${typeof value === "number" ? Number(value.toFixed(3)) : value}`)
    .join(", ");
  const dry = mode === "dry_run" ? " (dry run)" : "";
  if (verdict === "act") return { text: `${policy}: acts on ${who}${dry}: ${why}`, tone: "change" } as const;
  const reasons = blockers.map(({ reason, detail }) => `${reason} (${detail})`).join("; ");
  return { text: `${policy}: holds ${who}${dry}: ${reasons}`, tone: "change" } as const;
}

function formatAction(action: Action, nameOf: (node: NodeId) => string): ReportLine | null {
  const { id, policy, node, request, state, outcome, shadow, detail, proof } = action;
  const what = `${policy}: ${formatRequest(request)} of ${nameOf(node)} (${id})`;
  if (shadow) return state === "sent" ? { text: `${what}: not sent (dry run)`, tone: "change" } : null;
  switch (state) {
    case "sent":
      return { text: `${what}: ${action.inDoubt ? `in doubt: ${detail}` : "sent"}`, tone: "change" };
    case "withdrawn":
      return { text: `${what}: withdrawn: ${detail}`, tone: "change" };
    case "ended": {
      const took =
        action.sentAt === null || action.endedAt === null ? "" : ` after ${formatTook(action.endedAt - action.sentAt)}`;
      const shown = proof === null ? "" : `, proof: ${proof}`;
      const said = outcome === "refused" || outcome === "failed" ? `: ${detail}` : "";
      return { text: `${what}: ${outcome}${took}${shown}${said}`, tone: outcome === "verified" ? "good" : "bad" };
    }
    default:
      return null;
  }
}

function formatRequest(request: ActionRequest): string {
  switch (request.kind) {
    case "disconnect":
      return "disconnect";
    case "reboot":
      return request.force ? "forced reboot" : "reboot";
    case "quarantine":
      return `quarantine for ${request.durationMinutes} min`;
    default:
      return request satisfies never;
  }
}

const formatTook = (ms: number): string => formatDuration(Math.round(ms / SECOND_MS) * SECOND_MS);
