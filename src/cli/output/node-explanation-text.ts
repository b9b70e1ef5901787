import { ID_PREFIX } from "../../model/node.ts";
import type { Blocker, Evidence } from "../../model/remediation/episode.ts";
import { EXPLAINED_ROWS_MAX } from "../../model/remediation/journal.ts";
import type { ActionView, DecisionView, EpisodeView, HoldView, OperatorCommandView } from "../../web/api/row-views.ts";
import { answerLabel, requestLabel } from "../../web/ui/page/activity/activity-lines.ts";
import { actionState, countNoun, episodeState, formatDuration, formatFields } from "../../web/ui/page/format.ts";
import { PROGRAM } from "../context.ts";
import type { NodeReport, PolicyReport } from "./node-explanation.ts";
import { formatLength, formatTime, nodeLabel, type Paint, stripControlCharacters } from "./text.ts";

/** Maximum number of rows of each kind that the text lists. JSON has all that were read. */
const LISTED_MAX = 10;
const LABEL_CHARS = 10;

/** Formats a node report: the node, every policy with what holds it, and the latest actions, commands and decisions. */
export const formatNodeReport = (report: NodeReport, paint: Paint): string =>
  `${[
    summaryLines(report),
    ...report.policies.map((policy) => policyLines(policy, report)),
    latestRows("actions", report.actions, actionLines),
    report.orders.length === 0 ? [] : latestRows("operator commands", report.orders, operatorCommandLine),
    latestRows("decisions", report.decisions, decisionLine),
  ]
    .filter((paragraph) => paragraph.length > 0)
    .map((lines) => lines.map(stripControlCharacters))
    .map(([title, ...lines]) => [paint("title", title!), ...lines].join("\n"))
    .join("\n\n")}\n`;

/** Returns the fields that an expression read, a line each, as {@link formatFields} formats them. */
export const fieldLines = (fields: Evidence["fields"], observedAt: string | null): readonly string[] =>
  formatFields(fields, observedAt).map(([name, value]) => `${name} = ${value}`);

function summaryLines(report: NodeReport): readonly string[] {
  const { id, explained_at, seen, holds, policies } = report;
  const isTimed = policies.some(({ timer }) => timer !== null);
  const rows = [...holds, ...report.episodes, ...report.actions, ...report.decisions, ...report.orders];
  const isEmpty = !isTimed && seen === null && rows.length === 0;
  const location = [seen?.country, seen?.region].filter((part) => part !== null && part !== undefined);
  const state = seen && `${seen.status}${location.length === 0 ? "" : ` (${location.join(", ")})`}`;
  const { last_seen: lastSeen = null, age_seconds: ageSeconds = null } = seen ?? {};
  const ago = (at: string) => `${formatLength(Date.parse(explained_at) - Date.parse(at))} ago`;
  return [
    `${nodeLabel(id, seen?.name ?? null)}, at ${formatTime(explained_at)}`,
    ...withLabel("status", [state]),
    ...withLabel("last seen", [lastSeen && `${formatTime(lastSeen)}, ${ago(lastSeen)}`]),
    ...withLabel("observed", [ageSeconds === null ? null : `${formatDuration(ageSeconds)} ago`]),
    ...withLabel("held", holds.map(holdText)),
    ...withLabel("approval", report.actions.flatMap(approvalText)),
    ...withLabel("source", [sourceTexts[report.source]]),
    ...withLabel("policies", [policies.length === 0 ? noPoliciesTexts[report.source] : null]),
    ...withLabel("journal", [isEmpty ? noRecordsText(report) : null]),
  ];
}

function noRecordsText({ id, source }: NodeReport): string {
  if (!id.startsWith(ID_PREFIX))
    return `has no records: it has only ids of nodes, not names; find the id with ${PROGRAM} nodes --search`;
  return source === "past"
    ? "has no records up to that time: the node was healthy, did not exist, or the journal is newer"
    : "has no records: the node was healthy as far back as the journal goes, or does not exist";
}

const noPoliciesTexts: Readonly<Record<NodeReport["source"], string>> = {
  daemon: "none has ever applied to this node",
  journal: "none has ever applied to this node",
  past: "none had applied to this node by that time",
};

const sourceTexts: Readonly<Record<NodeReport["source"], string>> = {
  daemon: "the running daemon",
  journal: "the journal; verdicts are only known to the running daemon: omit --config to ask it",
  past: "the journal; verdicts, timers and ended holds of the past are not kept",
};

const holdText = ({ kind, policy, at, until, reason }: HoldView): string => {
  const appliesTo = policy === null ? "every policy" : policy;
  const end = until === null ? "until it is released" : `until ${formatTime(until)}`;
  return `${kind} for ${appliesTo} since ${formatTime(at)}, ${end}: ${reason}`;
};

/** Returns a line for an action that can be approved or rejected, and no line for others. */
function approvalText(action: ActionView): readonly string[] {
  const { id, policy, state } = action;
  const text = `${requestLabel(action.request)} by ${policy}`;
  if (state === "awaiting") return [`${text} waits${expiryText(action)}: ${PROGRAM} approve ${id}, or reject`];
  if (state === "approved") return [`${text} is approved${expiryText(action)}: ${PROGRAM} reject ${id} withdraws it`];
  return [];
}

/** Returns " until" and when an approval, or the request for one, expires; an empty string if that is unknown. */
export const expiryText = ({ expires_at: at }: ActionView): string => (at === null ? "" : ` until ${formatTime(at)}`);

function policyLines(policy: PolicyReport, report: NodeReport): readonly string[] {
  const own = <T extends { readonly policy: string }>(rows: readonly T[]) =>
    rows.filter((row) => row.policy === policy.policy);
  const decision = own(report.decisions)[0] ?? null;
  const episode = policy.episode ?? own(report.episodes)[0] ?? null;
  // For a policy that does not match the node, only its records are shown.
  const ifMatched = (lines: readonly string[]) => (policy.matched === false ? [] : lines);
  const hasTimer = report.source !== "past" && (policy.timer !== null || policy.matched !== false);
  return [
    policy.mode === null ? policy.policy : `${policy.policy} (${policy.mode})`,
    ...withLabel("verdict", verdictLines(policy)),
    ...withLabel("read", ifMatched(fieldsOf(policy, decision))),
    ...withLabel("timer", hasTimer ? [timerText(policy), otherStatusText(policy)] : []),
    ...withLabel("episode", episode === null ? ifMatched(["none"]) : episodeLines(episode, policy)),
    ...withLabel("decision", decision === null ? ifMatched([noDecisionText(report)]) : decisionLines(decision)),
    ...withLabel("now", ifMatched(policy.blockers === null ? [] : blockerLines(policy.blockers))),
  ];
}

function verdictLines({ verdict, matched, unknowns, blockers }: PolicyReport): readonly string[] {
  if (verdict === null) return [];
  if (matched === false) return ["the policy does not match this node"];
  const match = matched === null ? ["it is unknown whether the policy matches this node"] : [];
  const isObserved = blockers !== null;
  const shown = verdict === "unknown" && isObserved ? "unknown: no action is taken, and the timer is stopped" : verdict;
  return [shown, ...match, ...unknowns.map(({ field, why }) => `- ${field}: ${why}`)];
}

/** Returns the fields that the policy reads now, or else those of the last decision. */
function fieldsOf({ fields }: PolicyReport, decision: DecisionView | null): readonly string[] {
  if (fields !== null) return fieldLines(fields, null);
  if (decision === null) return [];
  const { fields: read, observed_at: observedAt } = decision.evidence;
  return [...fieldLines(read, observedAt), `(when decided; observed ${formatTime(observedAt)})`];
}

function timerText({ timer, for_seconds: needed }: PolicyReport): string {
  if (timer === null) return "inactive";
  const ofTotal = needed === null ? "" : ` of ${formatDuration(needed)}`;
  const since = formatTime(timer.since);
  if (timer.state === "pending") return `pending for ${formatDuration(timer.true_seconds)}${ofTotal}, since ${since}`;
  const counts = [
    ["true", timer.true_seconds],
    ["false again", timer.clear_seconds],
  ] as const;
  const counted = counts.flatMap(([verdict, time]) => (time > 0 ? [`, ${verdict} for ${formatDuration(time)}`] : []));
  return `firing${counted.join("")}; first true at ${since}`;
}

/** Returns a note about the last record with another status, which restarts a pending timer, or null if there is none. */
const otherStatusText = ({ timer, other_status_at: at }: PolicyReport): string | null =>
  timer?.state !== "pending" || at === null
    ? null
    : `another status was last seen ${formatTime(at)}: time before that does not count`;

function episodeLines(episode: EpisodeView, { steps }: PolicyReport): readonly (string | null)[] {
  const { quarantine, retry_at: retryAt } = episode;
  const name = steps[episode.step];
  const total = steps.length === 0 ? "" : ` of ${steps.length}`;
  const step = steps.length > 0 && name === undefined ? "after the last step" : `at step ${episode.step + 1}${total}`;
  const failed = episode.failures === 0 ? "" : `, ${countNoun(episode.failures, "failed attempt")}`;
  return [
    `${episode.id}${episode.dry_run ? " (dry run)" : ""}: ${episodeState(episode.state)} since ${formatTime(episode.state_at)}`,
    `opened ${formatTime(episode.opened_at)}${episode.closed_at === null ? "" : `, closed ${formatTime(episode.closed_at)}`}`,
    `${step}${name === undefined ? "" : ` (${name})`}, ${episode.acted} ${episode.dry_run ? "would have been sent" : "sent"}${failed}`,
    retryAt && `waits until ${formatTime(retryAt)}`,
    quarantine &&
      `quarantine (${quarantine.action}) ends ${formatTime(quarantine.ends_at)}${quarantine.overdue ? ", overdue" : ""}`,
  ];
}

/** The last decision of a policy may be older than the latest ones about the node, which are all that is read. */
const noDecisionText = ({ decisions }: NodeReport): string =>
  decisions.length < EXPLAINED_ROWS_MAX ? "none yet" : `none among the latest ${EXPLAINED_ROWS_MAX}`;

const decisionLines = ({ at, verdict, step, mode, blockers }: DecisionView): readonly string[] => [
  `${verdict} on step ${step + 1}, ${formatTime(at)}, mode ${mode}`,
  ...reasonLines(blockers),
];

const blockerLines = (blockers: NonNullable<PolicyReport["blockers"]>): readonly string[] =>
  blockers.length === 0
    ? ["nothing holds an action"]
    : [
        `${countNoun(blockers.length, "reason")} would hold an action`,
        ...blockers.flatMap((blocker) => [...reasonLines([blocker]), `  ends ${blocker.ends}`]),
      ];

const reasonLines = (blockers: readonly Blocker[]) => blockers.map(({ reason, detail }) => `- ${reason}: ${detail}`);

/** Longer descriptions of the states of actions than those of {@link actionState}. */
const stateTexts: Readonly<Record<string, string>> = {
  approved: "approved, not sent yet",
  intended: "recorded, not sent yet",
  sent: "sent, being verified",
  open: "not sent yet",
  withdrawn: "withdrawn before it was sent",
  lapsed: "lapsed before it was sent",
};

/** Returns the outcome of an action, or its state if it has none yet. */
export function stateText({ outcome, state, dry_run: dryRun, in_doubt: inDoubt }: ActionView): string {
  if (dryRun) return "dry run: not sent";
  if (outcome === null && inDoubt) return "in doubt, being verified";
  return outcome ?? stateTexts[state] ?? actionState(state);
}

function actionLines(action: ActionView): readonly string[] {
  const { proof, sent_at: sentAt, ended_at: endedAt } = action;
  const times = [
    ...(sentAt === null
      ? [`recorded ${formatTime(action.created_at)}`]
      : [`${action.dry_run ? "decided" : "sent"} ${formatTime(sentAt)}`]),
    ...(endedAt === null ? [] : [`ended ${formatTime(endedAt)}`]),
  ];
  return [
    `${action.id}  ${requestLabel(action.request)} by ${action.policy}, step ${action.step + 1} of ${action.episode}`,
    `    ${stateText(action)}${proof === null ? "" : `, proof: ${proof}`}`,
    `    ${times.join(", ")}`,
    ...answerLines(action),
    ...(action.in_doubt ? ["    no clear response: the outcome is determined by observation"] : []),
    ...(action.detail === null ? [] : [`    ${action.detail}`]),
  ];
}

/** Returns a line with the operator who answered an action, or no line if no operator has. */
function answerLines(action: ActionView): readonly string[] {
  const { operator, answered_at: at } = action;
  if (operator === null || at === null) return [];
  return [`    ${answerLabel(action)} by ${operator}, ${formatTime(at)}`];
}

const operatorCommandLine = ({ at, command, operator, detail }: OperatorCommandView): readonly string[] => [
  `${formatTime(at)}  ${command}${operator === null ? "" : ` by ${operator}`}: ${detail}`,
];

function decisionLine({ at, policy, verdict, blockers }: DecisionView): readonly string[] {
  const reasons = blockers.length === 0 ? "" : `: ${blockers.map(({ reason }) => reason).join(", ")}`;
  return [`${formatTime(at)}  ${policy}  ${verdict}${reasons}`];
}

function latestRows<T>(title: string, rows: readonly T[], linesOf: (row: T) => readonly string[]): readonly string[] {
  if (rows.length === 0) return [`no ${title}`];
  const lines = rows.slice(0, LISTED_MAX).flatMap(linesOf);
  const rest = `${rows.length - LISTED_MAX}${rows.length < EXPLAINED_ROWS_MAX ? "" : " or more"}`;
  const more = rows.length > LISTED_MAX ? [`and ${rest} earlier: see --output json`] : [];
  return [`${title}, newest first`, ...[...lines, ...more].map((line) => `  ${line}`)];
}

/** Returns the lines with a label before the first one, and the others indented. Null entries are left out. */
const withLabel = (label: string, lines: readonly (string | null)[]): readonly string[] =>
  lines
    .filter((line) => line !== null)
    .map((line, index) => `  ${(index === 0 ? label : "").padEnd(LABEL_CHARS)}${line}`);
