import { formatDuration, SECOND_MS } from "../../base/duration.ts";
import type { WardenView } from "../../remediation/status/views.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, ActionRequest } from "../../model/remediation/episode.ts";
import type { NodeId } from "../../model/node.ts";
import type { Told } from "./console-reporter.ts";

/** Turns decisions and actions into console lines. */
export interface Deeds {
  /** Lines on what is new since the last call; `nameOf` gives a node's name. */
  tell(warden: WardenView, nameOf: (node: NodeId) => string): Told[];
}

/** Rows looked at each time: more than any second of a demo brings. */
const ROWS = 200;
/** What is remembered as told, at most: the rows that are looked at are always among them. */
const TOLD_MAX = 5_000;

/** Creates a reporter that has reported nothing yet. */
export function createDeeds(): Deeds {
  const told = new Set<string>();

  function isNew(key: string): boolean {
    if (told.has(key)) return false;
    told.add(key);
    if (told.size > TOLD_MAX) for (const oldest of [...told].slice(0, TOLD_MAX / 2)) told.delete(oldest);
    return true;
  }

  return {
    tell(warden, nameOf) {
      const decisions = warden
        .decisions({ limit: ROWS })
        .toReversed()
        .filter(({ at, policy, node, verdict }) => isNew(`${at} ${policy} ${node} ${verdict}`))
        .map((decision) => ({ at: decision.at, told: decisionLine(decision, nameOf) }));
      const actions = warden
        .actions({ limit: ROWS })
        .toReversed()
        .filter(({ id, state, outcome }) => isNew(`${id} ${state} ${outcome}`))
        .flatMap((action) => {
          const line = actionLine(action, nameOf);
          return line === null ? [] : [{ at: action.endedAt ?? action.sentAt ?? action.createdAt, told: line }];
        });
      return [...decisions, ...actions].sort((a, b) => a.at - b.at).map((each) => each.told);
    },
  };
}

function decisionLine({ policy, node, verdict, mode, blockers, evidence }: Decision, nameOf: (node: NodeId) => string) {
  const who = `${nameOf(node)} (${node})`;
  const why = Object.entries(evidence.fields)
    .map(([field, value]) => `${field} ${typeof value === "number" ? Number(value.toFixed(3)) : value}`)
    .join(", ");
  const dry = mode === "dry_run" ? " (dry run)" : "";
  if (verdict === "act") return { text: `${policy}: acts on ${who}${dry}: ${why}`, tone: "change" } as const;
  const reasons = blockers.map(({ reason, detail }) => `${reason} (${detail})`).join("; ");
  return { text: `${policy}: holds ${who}${dry}: ${reasons}`, tone: "change" } as const;
}

function actionLine(action: Action, nameOf: (node: NodeId) => string): Told | null {
  const { id, policy, node, request, state, outcome, shadow, detail, proof } = action;
  const what = `${policy}: ${kindText(request)} of ${nameOf(node)} (${id})`;
  if (shadow) return state === "sent" ? { text: `${what}: not sent (dry run)`, tone: "change" } : null;
  switch (state) {
    case "sent":
      return { text: `${what}: ${action.inDoubt ? `in doubt: ${detail}` : "sent"}`, tone: "change" };
    case "withdrawn":
      return { text: `${what}: withdrawn: ${detail}`, tone: "change" };
    case "ended": {
      const took =
        action.sentAt === null || action.endedAt === null ? "" : ` after ${lasted(action.endedAt - action.sentAt)}`;
      const shown = proof === null ? "" : `, proof: ${proof}`;
      const said = outcome === "refused" || outcome === "failed" ? `: ${detail}` : "";
      return { text: `${what}: ${outcome}${took}${shown}${said}`, tone: outcome === "verified" ? "good" : "bad" };
    }
    default:
      return null;
  }
}

function kindText(request: ActionRequest): string {
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

const lasted = (ms: number): string => formatDuration(Math.round(ms / SECOND_MS) * SECOND_MS);
