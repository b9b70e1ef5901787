import type { ActionView, DecisionView, OperatorCommandView, RequestView } from "../../../api/row-views.ts";
import { actionState, formatDuration, formatFields, humanize } from "../format.ts";

/** The kinds of rows, by the name of their route. */
export type RowKind = "actions" | "decisions" | "orders";

/** A decision, an action or an operator command, as the list shows it. */
export interface ActivityLine {
  readonly key: string;
  readonly kind: RowKind;
  /** Time of the decision or command. For an action, the time of its latest change: its end, POST, answer or request. */
  readonly at: string;
  /** The time by which the API pages it. */
  readonly storedAt: string;
  readonly tone: string;
  /** Verdict of a decision, state of an action, or name of a command. */
  readonly badge: string;
  /** Null for a command to the whole daemon. */
  readonly node: string | null;
  /** The action, or the operator of a command. Empty for a decision. */
  readonly summary: string;
  /** Null for a command. */
  readonly policy: string | null;
  readonly isDryRun: boolean;
  readonly detail: string;
  /** Every blocker. Empty if nothing holds the node. */
  readonly blockers: DecisionView["blockers"];
  /** Names and values that an open line shows. Times are in UTC. */
  readonly facts: readonly (readonly [name: string, value: string])[];
}

/** Returns the line of a row, by its kind. */
export const LINE_BY_KIND: Readonly<Record<RowKind, (row: never) => ActivityLine>> = {
  decisions: decisionLine,
  actions: actionLine,
  orders: commandLine,
};

/** Returns the line of a decision. */
export function decisionLine(row: DecisionView): ActivityLine {
  const isAct = row.verdict === "act";
  return {
    key: `${row.policy} ${row.node} ${row.at}`,
    kind: "decisions",
    at: row.at,
    storedAt: row.at,
    tone: isAct ? "act" : "hold",
    badge: row.verdict,
    node: row.node,
    summary: "",
    policy: row.policy,
    isDryRun: row.mode === "dry_run",
    detail: isAct ? evidenceText(row.evidence) : "",
    blockers: row.blockers,
    facts: [
      ["mode", humanize(row.mode)],
      ["step", String(row.step + 1)],
      ["episode", row.episode ?? "none yet"],
      ...evidenceFacts(row.evidence),
    ],
  };
}

/** Returns the line of an action. */
export function actionLine(row: ActionView): ActivityLine {
  const state = row.outcome ?? row.state;
  const times = [
    ["requested", row.created_at],
    ["answered", row.answered_at],
    [row.dry_run ? "decided" : "sent", row.sent_at],
    ["ended", row.ended_at],
  ] as const;
  return {
    key: row.id,
    kind: "actions",
    at: row.ended_at ?? row.sent_at ?? row.answered_at ?? row.created_at,
    storedAt: row.created_at,
    tone: toneOf(state),
    badge: actionState(state),
    node: row.node,
    summary: requestLabel(row.request),
    policy: row.policy,
    isDryRun: row.dry_run,
    detail: actionDetail(row),
    blockers: [],
    facts: [
      ["action", `${row.id}, step ${row.step + 1} of ${row.episode}`],
      ...(row.operator === null ? [] : [["operator", row.operator] as const]),
      ...times.flatMap(([name, at]) => (at === null ? [] : [[name, at] as const])),
      ...evidenceFacts(row.evidence),
    ],
  };
}

/** Returns the line of an operator command. */
export function commandLine({ at, command, operator, node, action, detail }: OperatorCommandView): ActivityLine {
  const isRejected = command === "reload" && detail.includes("rejected: ");
  return {
    key: `command ${at} ${command} ${node} ${action}`,
    kind: "orders",
    at,
    storedAt: at,
    tone: isRejected ? "bad" : "wait",
    badge: humanize(command),
    node,
    summary: operator === null ? "" : `by ${operator}`,
    policy: null,
    isDryRun: false,
    detail,
    blockers: [],
    facts: [["operator", operator ?? "not named"], ...(action === null ? [] : [["action", action] as const])],
  };
}

/** Returns the evidence of a row in one line. */
export const evidenceText = ({ fields, observed_at }: DecisionView["evidence"]): string =>
  formatFields(fields, observed_at)
    .map(([field, value]) => `${field} ${value}`)
    .join(", ");

const evidenceFacts = ({ fields, observed_at }: DecisionView["evidence"]) => [
  ...formatFields(fields, observed_at),
  ["observed", observed_at] as const,
];

/** Returns what an action does in a few words. */
export function requestLabel(request: RequestView): string {
  if (request.kind === "reboot") return request.force ? "forced reboot" : "reboot";
  return request.kind === "quarantine"
    ? `quarantine for ${formatDuration(60 * request.duration_minutes)}`
    : request.kind;
}

/** Returns how an operator answered an action. */
export function answerLabel({ answered_at: at, ended_at: endedAt, state }: ActionView): string {
  // A rejection ends the action. If it is lifted later, the state becomes `lapsed`, but the time of the end stays.
  const isRejected = endedAt === at && (state === "rejected" || state === "lapsed");
  return isRejected ? "rejected" : "approved";
}

/** Returns the result of an action in one line. */
function actionDetail(row: ActionView): string {
  const took =
    row.ended_at !== null && row.sent_at !== null
      ? `after ${formatDuration((Date.parse(row.ended_at) - Date.parse(row.sent_at)) / 1_000)}`
      : "";
  const operator = row.operator === null ? "" : `${answerLabel(row)} by ${row.operator}`;
  const proof = row.proof === null ? "" : `proof: ${humanize(row.proof)}`;
  const parts = [row.in_doubt ? "in doubt" : "", operator, took, proof, row.detail ?? ""];
  return parts.filter((part) => part !== "").join(", ");
}

/** Returns the tone of the state of an episode, or of the state or outcome of an action. */
export function toneOf(state: string): string {
  if (state === "verified" || state === "healed") return "good";
  if (["ineffective", "refused", "failed", "in_doubt", "given_up"].includes(state)) return "bad";
  if (state === "awaiting") return "wait";
  return ["sent", "posting", "intended", "approved", "acting"].includes(state) ? "act" : "hold";
}
