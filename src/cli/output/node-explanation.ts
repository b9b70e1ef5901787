import type { nodeView } from "../../web/api/node-views.ts";
import type { ExplanationView, PolicyExplanationView } from "../../web/api/remediation-views.ts";
import type { ActionView, EpisodeView } from "../../web/api/row-views.ts";
import type { ResponseShape } from "../daemon-client.ts";

/** The state of a policy on a node. What is not known is null; unknown `steps` are an empty list. */
export type PolicyReport = KnownOfPolicy & {
  readonly [Key in Exclude<keyof PolicyExplanationView, keyof KnownOfPolicy>]: PolicyExplanationView[Key] | null;
};
type KnownOfPolicy = Pick<PolicyExplanationView, "policy" | "unknowns" | "steps">;

/** The journal's rows about one node, newest first. */
export type NodeRows = {
  readonly [Kind in (typeof ROW_KINDS)[number]]: readonly ExplanationView[Kind][number][];
};
const ROW_KINDS = ["holds", "episodes", "actions", "decisions", "orders"] as const;

/** Explains why a node was or was not acted on, at one time. */
export interface NodeReport extends NodeRows {
  readonly id: string;
  readonly explained_at: string;
  /** Source of the report. Only the running daemon knows verdicts; past timers and holds that have ended are not kept. */
  readonly source: "daemon" | "journal" | "past";
  readonly policies: readonly PolicyReport[];
  /** The node in the fleet, or null if it is unknown or not in the fleet. */
  readonly seen: ReportedNode | null;
}

/** The node in the daemon's response. */
type ReportedNode = Pick<
  NonNullable<ReturnType<typeof nodeView>>,
  "status" | "name" | "country" | "region" | "last_seen" | "age_seconds"
>;

/** Returns the report of a policy of which only the name is known. */
export const emptyPolicyReport = (policy: string): PolicyReport => ({
  policy,
  mode: null,
  verdict: null,
  matched: null,
  unknowns: [],
  fields: null,
  for_seconds: null,
  timer: null,
  other_status_at: null,
  episode: null,
  steps: [],
  blockers: null,
});

/** Returns the report, extended by the policies that only its rows name. */
export function withRecordedPolicies(report: NodeReport): NodeReport {
  const known = new Set(report.policies.map(({ policy }) => policy));
  const named = [...report.episodes, ...report.decisions, ...report.actions].map(({ policy }) => policy);
  const rest = [...new Set(named)].filter((policy) => !known.has(policy)).sort();
  return { ...report, policies: [...report.policies, ...rest.map(emptyPolicyReport)] };
}

/** Returns a report as of a time, from its rows. Later changes are undone as far as a row shows what was before. */
export const reportAsOf = (report: NodeReport, at: string): NodeReport => ({
  id: report.id,
  explained_at: at,
  source: "past",
  seen: null,
  policies: [],
  ...rowsAsOf(report, at),
});

/** Returns the rows as they were at a time. */
export function rowsAsOf(rows: NodeRows, at: string): NodeRows {
  const decisions = rows.decisions.filter((decision) => decision.at <= at);
  const actions = rows.actions.filter(({ created_at }) => created_at <= at).map((action) => actionAsOf(action, at));
  const asOf = (episode: EpisodeView) => episodeAsOf(episode, at, { decisions, actions });
  return {
    holds: rows.holds.filter((hold) => hold.at <= at && (hold.until === null || hold.until > at)),
    episodes: rows.episodes.filter(({ opened_at }) => opened_at <= at).map(asOf),
    actions,
    decisions,
    orders: rows.orders.filter((order) => order.at <= at),
  };
}

/** The daemon's response about a node, without the fields of the node if it is not in the fleet. */
export type DaemonExplanation = ExplanationView & Partial<ReportedNode>;

/** The keys that a report needs in the response. */
export const EXPLANATION_SHAPE: ResponseShape = {
  explained_at: "string",
  ...Object.fromEntries(["policies", ...ROW_KINDS].map((key) => [key, "array"])),
};

function actionAsOf(action: ActionView, at: string): ActionView {
  const isSent = action.sent_at !== null && action.sent_at <= at;
  // An action that awaits approval has been in this state since it was recorded.
  const isAsNow = action.ended_at === null ? isSent || action.state === "awaiting" : action.ended_at <= at;
  if (isAsNow) return action;
  return {
    ...action,
    outcome: null,
    proof: null,
    ended_at: null,
    detail: null,
    ...(action.answered_at !== null && action.answered_at <= at ? {} : { operator: null, answered_at: null }),
    state: isSent ? "sent" : "open",
    sent_at: isSent ? action.sent_at : null,
    in_doubt: false,
    rebooting_seen: false,
  };
}

/** Returns an episode as of a time. Past states are not recorded, but its step follows from its decisions and actions. */
function episodeAsOf(
  episode: EpisodeView,
  at: string,
  { decisions, actions }: Pick<NodeRows, "decisions" | "actions">,
): EpisodeView {
  if (episode.state_at <= at) return episode;
  const own = [...decisions, ...actions].filter((row) => row.episode === episode.id);
  return {
    ...episode,
    state: "open",
    state_at: episode.opened_at,
    closed_at: null,
    retry_at: null,
    healed: false,
    quarantine: null,
    failures: 0,
    step: Math.max(0, ...own.map(({ step }) => step)),
    acted: actions.filter((action) => action.episode === episode.id && action.sent_at !== null).length,
  };
}
